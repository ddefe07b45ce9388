#include "server/nfs4/namespace.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace selvage::server::nfs4 {
namespace {

storage::Credentials servers_own() {
  storage::Credentials own;
  own.uid = own.gid = 0;
  return own;
}

}  // namespace

bool PathNode::visible(const boost::asio::ip::address& client) const {
  if (served != nullptr && served->rule_for(client) != nullptr) return true;
  return std::ranges::any_of(children,
                             [&](const auto& child) { return child.second->visible(client); });
}

PathNode& Namespace::add(std::string_view path) {
  PathNode* at = root_.get();
  std::size_t begin = 1;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name(path.substr(begin, end - begin));
    auto& child = at->children[name];
    if (!child) {
      child = std::make_unique<PathNode>();
      child->name = name;
      child->parent = at;
      child->id = export_fsid(path.substr(0, end));
    }
    at = child.get();
    begin = end + 1;
  }
  return *at;
}

storage::Awaitable<std::shared_ptr<const Namespace>> Namespace::make(
    std::shared_ptr<const ExportTable> exports, storage::Worker& worker) {
  auto made = std::make_shared<Namespace>();
  made->exports_ = std::move(exports);
  made->root_ = std::make_unique<PathNode>();
  made->root_->id = export_fsid("/");
  ::clock_gettime(CLOCK_REALTIME, &made->made_);
  for (const auto& one : made->exports_->all()) {
    made->add(one->config.path).served = one.get();
    made->any_utf8_ = made->any_utf8_ || one->config.utf8;
  }
  co_await made->resolve(*made->root_, worker);
  co_return made;
}

// Top down: a node needs its parent's object.
storage::Awaitable<> Namespace::resolve(PathNode& node, storage::Worker& worker) {
  const PathNode* parent = node.parent;
  const storage::Credentials own = servers_own();
  const Export* around = nullptr;
  std::optional<storage::ObjectId> directory;
  if (parent != nullptr && parent->served != nullptr) {
    around = parent->served;
    directory = around->filesystem->root();
  } else if (parent != nullptr && parent->inside != nullptr) {
    around = parent->inside;
    directory = parent->object;
  }
  node.mounted_on = node.id;
  if (around != nullptr) {
    if (node.served == nullptr) node.inside = around;
    if (directory) {
      const storage::Caller caller{worker, own};
      const auto found = co_await around->filesystem->lookup(caller, *directory, node.name);
      if (found) {
        node.mounted_on = found->node.attributes.fileid;
        if (node.served == nullptr) node.object = found->node.id;
      }
    }
  }
  if (node.served != nullptr) {
    by_object_.emplace(Key{node.served, node.served->filesystem->root()}, &node);
  } else if (node.object) {
    by_object_.emplace(Key{node.inside, *node.object}, &node);
  } else if (node.pseudo()) {
    by_id_.emplace(node.id, &node);
  }
  for (const auto& [name, child] : node.children) co_await resolve(*child, worker);
}

const PathNode* Namespace::pseudo(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

const PathNode* Namespace::at(const Export& served, const storage::ObjectId& directory) const {
  const auto found = by_object_.find(Key{&served, directory});
  return found == by_object_.end() ? nullptr : found->second;
}

}  // namespace selvage::server::nfs4
