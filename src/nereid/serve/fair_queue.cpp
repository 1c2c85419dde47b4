#include "nereid/serve/fair_queue.h"

namespace nereid::serve {

void FairQueue::push(const Client& client, std::string id) {
  auto [principal, new_principal] = principals_.members.try_emplace(client.principal);
  if (new_principal) principals_.order.push_back(client.principal);
  auto& clients = principal->second.clients;
  auto [ids, new_client] = clients.members.try_emplace(client.name);
  if (new_client) clients.order.push_back(client.name);
  ids->second.push_back(std::move(id));
  ++principal->second.size;
  ++size_;
}

std::optional<std::string> FairQueue::pop() {
  if (size_ == 0) return std::nullopt;
  const std::string principal = principals_.order.front();
  principals_.order.pop_front();
  const auto found = principals_.members.find(principal);
  auto& clients = found->second.clients;
  const std::string name = clients.order.front();
  clients.order.pop_front();
  const auto ids = clients.members.find(name);
  std::string id = std::move(ids->second.front());
  ids->second.pop_front();
  if (ids->second.empty())
    clients.members.erase(ids);
  else
    clients.order.push_back(name);
  --size_;
  if (--found->second.size == 0)
    principals_.members.erase(found);
  else
    principals_.order.push_back(principal);
  return id;
}

size_t FairQueue::size_of(const std::string& principal) const {
  const auto found = principals_.members.find(principal);
  return found == principals_.members.end() ? 0 : found->second.size;
}

std::map<std::string, size_t> FairQueue::sizes() const {
  std::map<std::string, size_t> sizes;
  for (const auto& [name, principal] : principals_.members) sizes[name] = principal.size;
  return sizes;
}

}  // namespace nereid::serve
