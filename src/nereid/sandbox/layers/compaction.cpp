#include "nereid/sandbox/layers/compaction.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "nereid/sandbox/layers/arenas.h"
#include "nereid/sandbox/layers/outer.h"

namespace nereid::sandbox {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kMadviseCollapse = 25;              // MADV_COLLAPSE, newer than Debian 12's headers
constexpr int kWorthCopying = 32;                 // pages: two faults, each of which brings its neighbours
constexpr size_t kMaxFilePieces = 128;            // 256 MB
constexpr uint64_t kPresent = uint64_t{1} << 63;  // in /proc/PID/pagemap

struct Mapping {
  uint64_t first = 0, last = 0;  // [first, last), shrunk to whole huge pages
  std::string access;
  bool file = false, heap = false, named = false;
};

std::vector<Mapping> own_mappings() {
  std::vector<Mapping> found;
  std::istringstream maps(read_own_proc("maps"));
  for (std::string line; std::getline(maps, line);) {
    Mapping m;
    uint64_t inode = 0;
    char access[8] = {}, name[16] = {};
    const int fields = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64 " %15s",
                                   &m.first, &m.last, access, &inode, name);
    if (fields < 4) continue;
    m.access = access, m.file = inode != 0, m.named = fields == 5, m.heap = std::strcmp(name, "[heap]") == 0;
    m.first = (m.first + kHugePage - 1) / kHugePage * kHugePage;
    m.last = m.last / kHugePage * kHugePage;
    if (m.first < m.last) found.push_back(std::move(m));
  }
  return found;
}

// The folder that a worker was given is the one it was started with, its own; a fork of it has another.
int open_own_pagemap() {
  const int fd = ::openat(kProcDescriptor, "../self/pagemap", O_RDONLY | O_CLOEXEC);
  return fd >= 0 ? fd : ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

bool is_constant_file(const Mapping& m) { return m.file && (m.access == "r-xp" || m.access == "r--p"); }

// memcpy, of a mapping: the address sanitizer would take what it keeps between variables for their end.
__attribute__((no_sanitize("address"))) void copy_words(char* to, uint64_t from) {
  const auto* words = reinterpret_cast<const uint64_t*>(from);
  for (size_t i = 0; i < kHugePage / sizeof *words; ++i) {
    reinterpret_cast<uint64_t*>(to)[i] = words[i];
    asm volatile("" ::: "memory");  // or the compiler would make it memcpy
  }
}

// Puts a copy into a huge page of memory in the place of a piece of a file. The program counter may be in it:
// nothing runs between the moment that the old pages go and the new ones come.
bool copy_file_piece(uint64_t piece, int access) {
  auto* room = static_cast<char*>(
      ::mmap(nullptr, 2 * kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (room == MAP_FAILED) return false;
  char* copy =
      reinterpret_cast<char*>((reinterpret_cast<uint64_t>(room) + kHugePage - 1) / kHugePage * kHugePage);
  ::madvise(copy, kHugePage, MADV_HUGEPAGE);
  copy_words(copy, piece);
  // As small pages it would do harm. Where anonymous memory may not become code, things stay as they are.
  const bool moved =
      ::madvise(copy, kHugePage, kMadviseCollapse) == 0 && ::mprotect(copy, kHugePage, access) == 0 &&
      ::mremap(copy, kHugePage, kHugePage, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(piece)) !=
          MAP_FAILED;
  if (copy > room) ::munmap(room, static_cast<size_t>(copy - room));
  ::munmap(moved ? copy + kHugePage : copy,
           static_cast<size_t>(room + 2 * kHugePage - copy) - (moved ? kHugePage : 0));
  return moved;
}

}  // namespace

std::vector<uint64_t> file_pieces_in_use() {
  std::vector<std::pair<int64_t, uint64_t>> found;  // pages, piece
  const int fd = open_own_pagemap();
  uint64_t entries[kHugePage / kPage];
  for (const auto& m : own_mappings()) {
    if (!is_constant_file(m)) continue;
    for (uint64_t piece = m.first; piece < m.last; piece += kHugePage) {
      const auto at = static_cast<off_t>(piece / kPage * sizeof entries[0]);
      if (::pread(fd, entries, sizeof entries, at) != static_cast<ssize_t>(sizeof entries)) continue;
      const auto pages = std::ranges::count_if(entries, [](uint64_t e) { return (e & kPresent) != 0; });
      if (pages >= kWorthCopying) found.emplace_back(-pages, piece);
    }
  }
  if (fd >= 0) ::close(fd);
  std::ranges::sort(found);
  if (found.size() > kMaxFilePieces) found.resize(kMaxFilePieces);
  std::vector<uint64_t> pieces;
  for (const auto& [pages, piece] : found) pieces.push_back(piece);
  return pieces;
}

std::vector<uint64_t> file_pieces_used_by(const std::function<void()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    const auto found = file_pieces_in_use();  // far less than a pipe holds
    const size_t bytes = found.size() * sizeof found[0];
    ::_exit(::write(ends[1], found.data(), bytes) == static_cast<ssize_t>(bytes) ? 0 : 1);
  }
  ::close(ends[1]);
  std::vector<uint64_t> pieces(kMaxFilePieces);
  const ssize_t got = ::read(ends[0], pieces.data(), pieces.size() * sizeof pieces[0]);
  pieces.resize(got > 0 ? static_cast<size_t>(got) / sizeof pieces[0] : 0);
  ::close(ends[0]);
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  return pieces;
}

Compaction::Compaction(std::vector<uint64_t> file_pieces) : file_pieces_(std::move(file_pieces)) {
  for (const auto& m : own_mappings())
    if (m.access == "rw-p" && !m.file && (m.heap || !m.named)) ranges_.emplace_back(m.first, m.last);
}

bool Compaction::step() {
  while (!file_pieces_.empty()) {
    const uint64_t piece = file_pieces_.back();
    file_pieces_.pop_back();
    for (const auto& m : own_mappings())
      if (is_constant_file(m) && m.first <= piece && piece + kHugePage <= m.last &&
          copy_file_piece(piece, m.access == "r-xp" ? PROT_READ | PROT_EXEC : PROT_READ))
        return true;
  }
  while (!ranges_.empty()) {
    auto& [first, last] = ranges_.back();
    if (first == last) {
      ranges_.pop_back();
      continue;
    }
    last -= kHugePage;
    // Untouched memory, or memory that went meanwhile, is refused at once and costs nothing; on to the
    // next.
    if (::madvise(reinterpret_cast<void*>(last), kHugePage, kMadviseCollapse) == 0) return true;
  }
  return false;
}

}  // namespace nereid::sandbox
