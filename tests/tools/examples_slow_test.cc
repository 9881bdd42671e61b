// The examples, as examples/README.md calls them, on the data that are shared with other projects: each reaches what Keras and PyTorch reach there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kShared = HONE_SHARED_DIR;
const std::string kDigits = kShared + "/data/mnist-10k", kNewswires = kShared + "/data/reuters-r8", kText = kShared + "/data/tinyshakespeare/input.txt";

/// What `text` says of `name`, as in "val_accuracy: 0.9580", again and again.
std::vector<double> values_in(const std::string& text, const std::string& name) {
  std::vector<double> values;
  const std::string word = " " + name + ": ";
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) values.push_back(std::stod(text.substr(at + word.size())));
  return values;
}

/// Keeps this process, and those that it starts, on the core that it is on: threads that wait for each other at every kernel take many times as long where others want the cores, too.
class OnOneCore {
 public:
  OnOneCore() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(std::max(0, sched_getcpu())), &one);
    sched_getaffinity(0, sizeof before_, &before_);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;

 private:
  cpu_set_t before_ = {};
};

class Examples : public ::testing::Test {
 protected:
  void SetUp() override {
    if (not file_exists(kShared + "/data") or not file_exists(kShared + "/models")) GTEST_SKIP() << "the shared data sets are not here";
  }
  ToolRun run(const std::string& command) const { return run_well(folder_.path(), command); }
  OnOneCore core_;
  TempFolder folder_;
};

/// Keras reaches 0.9545 to 0.9625.
TEST_F(Examples, Digits) {
  const ToolRun whole = run("mnist " + kDigits + " 10");
  EXPECT_THAT(whole.err, HasSubstr("output \"probabilities\" ends in Softmax, and the loss softmax_cross_entropy takes the softmax of it again"));
  ASSERT_THAT(values_in(whole.err, "val_accuracy"), SizeIs(10));
  EXPECT_GE(values_in("\n " + whole.out.substr(whole.out.find('\n') + 1), "accuracy").at(0), 0.950);
  const std::vector<double> until = values_in(run("mnist " + kDigits + " 10 0.94").err, "val_accuracy");
  EXPECT_LT(until.size(), 10u);
  EXPECT_GE(until.back(), 0.94);
}

/// Keras reaches 0.886 to 0.916 over three seeds.
TEST_F(Examples, Newswires) { EXPECT_GE(values_in(run("newswire " + kNewswires).err, "val_accuracy").at(9), 0.87); }

/// In half of the epochs; two devices make half as many updates.
TEST_F(Examples, NewswiresOnTwoDevices) {
  std::istringstream last_row(run("mirrored " + kNewswires + " 2 5").out);
  std::vector<std::string> cells;
  for (std::string line; std::getline(last_row, line);) {
    std::istringstream words(line);
    cells.clear();
    for (std::string word; words >> word;) cells.push_back(word);
  }
  ASSERT_THAT(cells, SizeIs(11));  // the epoch, and behind a bar each, val_loss, val_accuracy, val_top_5_accuracy and seconds
  EXPECT_EQ(cells[0], "5");
  EXPECT_GE(std::stod(cells[3]), 0.86);
  EXPECT_GE(std::stod(cells[8]), 0.84);
  for (const std::size_t top_five : {4, 9}) EXPECT_GE(std::stod(cells[top_five]), 0.98);
}

TEST_F(Examples, ANewHead) {
  const std::string said = run("finetune " + kShared + "/models/torch_resnet_tiny/model.onnx " + kDigits + " 3").err;
  EXPECT_THAT(said, HasSubstr("the head \"fc.weight\" of 10 classes is replaced by a fresh one of 5"));
  const std::vector<double> accuracies = values_in(said, "val_accuracy");
  ASSERT_THAT(accuracies, SizeIs(6));
  EXPECT_GE(*std::max_element(accuracies.begin(), accuracies.begin() + 3), 0.95) << "of the whole net";
  EXPECT_GE(accuracies.back(), 0.88) << "of the head alone, on a backbone that never saw these digits";
  for (const char* file : {"pretrained.onnx", "finetuned.onnx"}) EXPECT_THAT(folder_.read(file), Not(IsEmpty()));
}

/// PyTorch (examples/peers/char_gpt.py) has 2.296 after as many steps. Stopped on the way, and gone on with.
TEST_F(Examples, AGptThatWrites) {
  const std::string command = "char_gpt " + kText + " 500 run";
  const ToolRun stopped = run_and_signal_at(folder_.path(), command, "Epoch 2/2", SIGINT);
  EXPECT_EQ(stopped.exit, 75);
  EXPECT_THAT(stopped.err, HasSubstr("; the same command goes on"));
  const ToolRun rest = run(command);
  EXPECT_THAT(rest.err, HasSubstr("Going on after step "));
  EXPECT_LE(values_in(rest.err, "val_loss").back(), 2.30);
  EXPECT_GT(rest.out.size(), 500u);
}

/// Without a folder there is nothing to go on from.
TEST_F(Examples, AGptThatKeepsNothing) { EXPECT_GT(run("char_gpt " + kText + " 20").out.size(), 500u); }

}  // namespace
}  // namespace hone::test
