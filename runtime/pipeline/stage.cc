#include "runtime/pipeline/stage.h"

#include <fmt/format.h>

#include "base/diag.h"

namespace hone {

std::int64_t ExampleStream::skip(std::int64_t count) {
  Example ignored;
  std::int64_t done = 0;
  while (done < count and next(&ignored)) ++done;
  return done;
}

Example for_example(const char* stage, std::int64_t number, const std::function<Example()>& make) {
  const std::string where = fmt::format("{}: example {}: ", stage, number);
  try {
    return make();
  } catch (const Error& error) {
    std::vector<Diag> diags = error.diags();
    diags.front().message.insert(0, where);
    throw Error(std::move(diags));
  } catch (const std::bad_alloc&) { throw; } catch (const InternalError&) {
    throw;
  } catch (const std::exception& failure) {
    throw Error(Code::kDataFormat, where + failure.what(), {}, {"the function that the data set was given has thrown this"});
  }
}

}  // namespace hone
