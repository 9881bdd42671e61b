// Tar archives for tests, right and wrong ones.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace hone::test {

class TarArchive {
 public:
  /// A member with a right checksum. `type`: '0' a file, '5' a folder, 'L' a long name, 'x' pax records; `size` what the header says, if it is to lie.
  TarArchive& add(const std::string& name, const std::string& content, char type = '0', const std::string& size = "") {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(100, 7, "0000644");
    char digits[13];
    std::snprintf(digits, sizeof(digits), "%011zo", content.size());
    const std::string said = size.empty() ? digits : size;
    header.replace(124, said.size(), said);
    header[156] = type;
    header.replace(257, 8, std::string_view("ustar\00000", 8));
    header.replace(148, 8, "        ");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(digits, sizeof(digits), "%06o", sum);
    header.replace(148, 7, std::string(digits) + '\0');
    bytes_ += header + content + std::string((512 - content.size() % 512) % 512, '\0');
    return *this;
  }
  std::string str() const { return bytes_ + std::string(1024, '\0'); }
  std::string without_end() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace hone::test
