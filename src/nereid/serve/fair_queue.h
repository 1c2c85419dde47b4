// Which pair is judged next: principals take turns, and of each principal its clients.
//
// A principal is who a token belongs to, or an address where there are no tokens; a client is what a
// principal calls one of its own programs, so inventing clients wins nothing from other principals.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace nereid::serve {

struct Client {
  std::string principal, name;
};

class FairQueue {
 public:
  void push(const Client& client, std::string id);
  std::optional<std::string> pop();
  size_t size() const { return size_; }
  size_t size_of(const std::string& principal) const;
  std::map<std::string, size_t> sizes() const;  // of each principal that has any

 private:
  // Members in the order of their turns.
  template <typename Member>
  struct Turns {
    std::deque<std::string> order;
    std::map<std::string, Member> members;
  };
  struct Principal {
    Turns<std::deque<std::string>> clients;
    size_t size = 0;
  };
  Turns<Principal> principals_;
  size_t size_ = 0;
};

}  // namespace nereid::serve
