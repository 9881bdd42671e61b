// The container of a plan, little-endian throughout:
//
//   header    64 bytes: magic, format version, number of sections, bytes of the file, hash of the section table, hash of the header
//   table     32 bytes a section: kind, zero, offset, bytes, xxh64
//   sections  each at the next multiple of 64, the gaps zero: features (0), metadata (1), then blobs
//
// Every byte of the file is checked: it is hashed, or must be zero.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <set>

#include "base/alignment.h"
#include "base/check.h"
#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "runtime/plan/metadata.h"
#include "runtime/plan/plan.h"

namespace hone::plan {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'H', 'O', 'N', 'E', 'P', 'L', 'A', 'N'};
constexpr std::uint32_t kFormatVersion = 2;
constexpr std::uint64_t kSectionAlignment = 64;
constexpr std::uint32_t kFeaturesSection = 0, kMetadataSection = 1, kFirstBlob = 2;

/// What a plan may ask of its reader. A plan names what it uses, and a reader refuses what is not in this list.
constexpr std::string_view kFeatures[] = {"kernel", "library", "host", "copy", "all_reduce", "read_sizes", "region", "panels", "own_parts", "narrowed_weights", "epilogues", "calls"};
constexpr std::size_t kPanelsFeature = std::variant_size_v<decltype(Step::what)>;  // before it, the kinds of steps
constexpr std::size_t kOwnPartsFeature = kPanelsFeature + 1;
constexpr std::size_t kNarrowedFeature = kOwnPartsFeature + 1;
constexpr std::size_t kEpiloguesFeature = kNarrowedFeature + 1;
constexpr std::size_t kCallsFeature = kEpiloguesFeature + 1;
static_assert(kCallsFeature + 1 == std::size(kFeatures));

/// plan::check limits the depth.
bool has_epilogues(const Entry& entry) {
  return std::ranges::any_of(entry.steps, [](const Step& step) {
    if (const auto* region = std::get_if<RegionStep>(&step.what)) return std::ranges::any_of(region->bodies, has_epilogues);
    const auto* library = std::get_if<LibraryStep>(&step.what);
    return library != nullptr and library->epilogue.has_value();
  });
}

/// Library calls with a body beside them. plan::check limits the depth.
bool has_calls(const Entry& entry) {
  return std::ranges::any_of(entry.steps, [](const Step& step) {
    const auto* region = std::get_if<RegionStep>(&step.what);
    return region != nullptr and (region->kind == RegionStep::Kind::kCall or std::ranges::any_of(region->bodies, has_calls));
  });
}

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kFormatVersion;
  std::uint32_t section_count = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t table_hash = 0;
  std::array<std::uint64_t, 3> zero = {};
  std::uint64_t header_hash = 0;  ///< of all bytes before it
};
static_assert(sizeof(Header) == 64);

enum class SectionKind : std::uint32_t { kFeatures, kMetadata, kBlob };

struct Section {
  SectionKind kind = SectionKind::kBlob;
  std::uint32_t zero = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};
static_assert(sizeof(Section) == 32);

std::uint64_t hash_of(std::span<const std::byte> bytes) { return XXH64(bytes.data(), bytes.size(), 0); }
std::uint64_t hash_of(const Header& header) { return XXH64(&header, offsetof(Header, header_hash), 0); }
std::uint64_t section_start(std::uint64_t position) { return round_up(position, kSectionAlignment, "the plan's sections"); }
std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Writing

std::string features_of(const Plan& plan) {
  std::set<std::size_t> used;
  for (const Program& program : plan.programs) {
    for (const Entry& entry : program.entries)
      for (const Step& step : entry.steps) used.insert(step.what.index());
    for (const Entry& entry : program.entries)
      if (is_sharded(entry.name)) used.insert(kOwnPartsFeature);
    if (std::ranges::any_of(program.entries, has_epilogues)) used.insert(kEpiloguesFeature);
    if (std::ranges::any_of(program.entries, has_calls)) used.insert(kCallsFeature);
    for (const Persistent& persistent : program.persistents)
      if (persistent.panels) used.insert(kPanelsFeature);
    for (const Persistent& persistent : program.persistents)
      if (persistent.narrowed) used.insert(kNarrowedFeature);
  }
  std::string features;
  for (const std::size_t feature : used) features += std::string(kFeatures[feature]) + "\n";
  return features;
}

/// The sections to come, each set of bytes once: programs for several targets share their weights.
class SectionWriter {
 public:
  explicit SectionWriter(std::span<const std::byte> features) : contents_{{features, hash_of(features)}, {}} {}

  std::uint32_t add(std::span<const std::byte> bytes) {
    const std::uint64_t hash = hash_of(bytes);
    const auto [known, is_new] = numbers_.try_emplace({hash, bytes.size()}, static_cast<std::uint32_t>(contents_.size()));
    if (not is_new and (bytes.empty() or std::memcmp(bytes.data(), contents_[known->second].bytes.data(), bytes.size()) == 0)) return known->second;
    contents_.push_back({bytes, hash});
    return static_cast<std::uint32_t>(contents_.size() - 1);
  }

  void write(AtomicFile& file, std::span<const std::byte> metadata) {
    contents_[kMetadataSection] = {metadata, hash_of(metadata)};
    std::vector<Section> table(contents_.size());
    std::uint64_t position = sizeof(Header) + table.size() * sizeof(Section);
    for (std::size_t i = 0; i < table.size(); ++i) {
      const SectionKind kind = i == kFeaturesSection ? SectionKind::kFeatures : i == kMetadataSection ? SectionKind::kMetadata : SectionKind::kBlob;
      table[i] = {.kind = kind, .zero = 0, .offset = section_start(position), .bytes = contents_[i].bytes.size(), .hash = contents_[i].hash};
      position = table[i].offset + table[i].bytes;
    }
    Header header;
    header.section_count = static_cast<std::uint32_t>(table.size());
    header.file_bytes = position;
    header.table_hash = hash_of(std::as_bytes(std::span(table)));
    header.header_hash = hash_of(header);
    file.write(std::as_bytes(std::span(&header, 1)));
    file.write(std::as_bytes(std::span(table)));
    for (const Content& content : contents_) {
      file.pad_to(kSectionAlignment);
      file.write(content.bytes);
    }
  }

 private:
  struct Content {
    std::span<const std::byte> bytes;
    std::uint64_t hash = 0;
  };
  std::vector<Content> contents_;
  std::map<std::pair<std::uint64_t, std::size_t>, std::uint32_t> numbers_;
};

// Reading

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(Code::kPlanFormat, fmt::format("{}: {}", path, what), {}, {"the file is damaged or cut short; copy it again, or compile the model again"});
}

/// Checks a mapped plan from the outside in; nothing is looked at before what it depends on is known to be whole.
class SectionReader {
 public:
  explicit SectionReader(const MappedFile& file) : path_(printable(file.path())), bytes_(file.bytes()) {
    read_header();
    read_table();
    check_features();
  }

  std::span<const std::byte> metadata() const { return content(kMetadataSection); }

  std::span<const std::byte> blob(std::uint32_t number) const {
    if (number < kFirstBlob or number >= table_.size()) damaged(path_, fmt::format("there is no blob {}", number));
    return content(number);
  }

 private:
  void read_header() {
    if (bytes_.size() < kMagic.size() or std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0)
      throw Error(Code::kPlanFormat, fmt::format("{} is not a plan", path_), {},
                  {"a plan is what hone-compile writes: hone-compile model.onnx -r train.toml -o model.hone", "a trained model goes beside its plan: hone-run predict model.hone --weights trained.onnx"});
    if (bytes_.size() < sizeof(Header)) damaged(path_, "the file ends within its header");
    std::memcpy(&header_, bytes_.data(), sizeof(Header));
    if (header_.version != kFormatVersion)
      throw Error(Code::kPlanVersion, fmt::format("{} has plan format {}; this version of Hone reads format {}", path_, header_.version, kFormatVersion), {},
                  {"compile the model again with this version of Hone"});
    if (header_.header_hash != hash_of(header_)) damaged(path_, "the header does not match its hash");
    if (header_.zero != decltype(header_.zero){}) damaged(path_, "the header holds something unknown");
    if (header_.file_bytes != bytes_.size()) damaged(path_, fmt::format("the file has {} bytes of {}", bytes_.size(), header_.file_bytes));
  }

  void read_table() {
    const std::uint64_t table_bytes = std::uint64_t{header_.section_count} * sizeof(Section);
    if (header_.section_count < kFirstBlob or table_bytes > bytes_.size() - sizeof(Header))
      damaged(path_, fmt::format("a table of {} sections does not fit", header_.section_count));
    table_.resize(header_.section_count);
    std::memcpy(table_.data(), bytes_.data() + sizeof(Header), table_bytes);
    if (header_.table_hash != hash_of(std::as_bytes(std::span(table_)))) damaged(path_, "the section table does not match its hash");
    std::uint64_t end = sizeof(Header) + table_bytes;
    for (std::uint32_t i = 0; i < table_.size(); ++i) {
      check_section(i, end);
      end = table_[i].offset + table_[i].bytes;
    }
    if (end != bytes_.size()) damaged(path_, "bytes follow the last section");
  }

  void check_section(std::uint32_t number, std::uint64_t end_of_previous) const {
    const Section& section = table_[number];
    const SectionKind expected = number == kFeaturesSection ? SectionKind::kFeatures : number == kMetadataSection ? SectionKind::kMetadata : SectionKind::kBlob;
    if (section.kind != expected or section.zero != 0) damaged(path_, fmt::format("section {} is of an unknown kind", number));
    if (section.offset != section_start(end_of_previous) or section.offset > bytes_.size() or section.bytes > bytes_.size() - section.offset)
      damaged(path_, fmt::format("section {} lies outside of the file", number));
    for (std::uint64_t i = end_of_previous; i < section.offset; ++i)
      if (bytes_[i] != std::byte{0}) damaged(path_, fmt::format("there are bytes before section {}", number));
    if (section.hash != hash_of(content(number))) damaged(path_, fmt::format("section {} does not match its hash", number));
  }

  void check_features() const {
    const std::span<const std::byte> content = this->content(kFeaturesSection);
    for (const std::string& name : split({reinterpret_cast<const char*>(content.data()), content.size()}, '\n')) {
      if (name.empty() or std::find(std::begin(kFeatures), std::end(kFeatures), name) != std::end(kFeatures)) continue;
      throw Error(Code::kPlanVersion, fmt::format("{} needs the feature {}, which this version of Hone does not have", path_, quoted(name)), {},
                  {"run it with the version that compiled it, or compile the model again"});
    }
  }

  std::span<const std::byte> content(std::uint32_t number) const { return bytes_.subspan(table_[number].offset, table_[number].bytes); }

  std::string path_;
  std::span<const std::byte> bytes_;
  Header header_;
  std::vector<Section> table_;
};

}  // namespace

void save(const Plan& plan, const std::string& path) {
  const std::string features = features_of(plan);
  SectionWriter sections(bytes_of(features));
  const std::string metadata = write_metadata(plan, [&sections](std::span<const std::byte> bytes) { return sections.add(bytes); });
  write_file_atomically(path, [&](AtomicFile& file) { sections.write(file, bytes_of(metadata)); });
}

Plan load(const std::string& path) {
  const MappedFile file(path);
  const SectionReader sections(file);
  try {
    Plan plan = read_metadata(sections.metadata(), [&sections](std::uint32_t number) { return sections.blob(number); });
    check(plan);
    return plan;
  } catch (const std::bad_alloc&) {
    throw Error(Code::kMemory, fmt::format("the weights of {} do not fit into memory", printable(path)));
  } catch (const Error& error) {
    std::vector<Diag> diags = error.diags();
    for (Diag& diag : diags) diag.loc.file = printable(path, 1000);
    throw Error(std::move(diags));
  }
}

}  // namespace hone::plan
