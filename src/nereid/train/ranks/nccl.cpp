#include "nereid/train/ranks/nccl.h"

#include <c10/core/DeviceGuard.h>
#include <dlfcn.h>

namespace nereid::train {
namespace {

// nccl.h's, of NCCL 2.
constexpr int kNcclFloat32 = 7, kNcclBfloat16 = 9, kNcclSum = 0;
// The stream of all our work: libtorch's default, which is CUDA's own.
void* const kDefaultStream = nullptr;

struct Library {
  int (*get_unique_id)(NcclId*) = nullptr;
  int (*init_rank)(void**, int, NcclId, int) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*reduce)(const void*, void*, size_t, int, int, int, void*, void*) = nullptr;
  int (*broadcast)(const void*, void*, size_t, int, int, void*, void*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  std::string missing;
};

const Library& library() {
  static const Library loaded = [] {
    Library found;
    void* handle = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) handle = ::dlopen("libnccl.so.2", RTLD_LAZY);
    const auto find = [&](auto& function, const char* name) {
      function = handle == nullptr
                     ? nullptr
                     : reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      if (function == nullptr && found.missing.empty()) found.missing = name;
    };
    find(found.get_unique_id, "ncclGetUniqueId");
    find(found.init_rank, "ncclCommInitRank");
    find(found.destroy, "ncclCommDestroy");
    find(found.group_start, "ncclGroupStart");
    find(found.group_end, "ncclGroupEnd");
    find(found.reduce, "ncclReduce");
    find(found.broadcast, "ncclBroadcast");
    find(found.error_text, "ncclGetErrorString");
    return found;
  }();
  return loaded;
}

Status loaded() {
  if (library().missing.empty()) return ok_status();
  return our_error("libnccl.so.2 has no {}: several GPUs need it", library().missing);
}

Status checked(int code, const char* what) {
  return code == 0 ? ok_status() : our_error("NCCL: {}: {}", what, library().error_text(code));
}

int type_of(const at::Tensor& tensor) {
  NEREID_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16,
               "float32 or bfloat16, got {}", c10::toString(tensor.scalar_type()));
  return tensor.scalar_type() == at::kFloat ? kNcclFloat32 : kNcclBfloat16;
}

// One call for each owner's part, all of them together; a part may be empty.
template <typename Call>
Status for_each_part(const at::Tensor& flat, const std::vector<int64_t>& borders, const char* what,
                     const Call& call) {
  NEREID_TRY_STATUS(checked(library().group_start(), what));
  Status status = ok_status();
  for (size_t owner = 0; owner + 1 < borders.size() && status.ok(); ++owner) {
    const at::Tensor part = flat.slice(0, borders[owner], borders[owner + 1]);
    if (part.numel() > 0)
      status =
          checked(call(part.data_ptr(), static_cast<size_t>(part.numel()), static_cast<int>(owner)), what);
  }
  const Status ended = checked(library().group_end(), what);
  return status.ok() ? ended : status;
}

}  // namespace

Result<NcclId> Nccl::new_id() {
  NEREID_TRY_STATUS(loaded());
  NcclId id{};
  NEREID_TRY_STATUS(checked(library().get_unique_id(&id), "a new id"));
  return id;
}

Result<Nccl> Nccl::join(const NcclId& id, int64_t rank, int64_t count, at::Device device) {
  NEREID_TRY_STATUS(loaded());
  const c10::DeviceGuard guard(device);
  void* communicator = nullptr;
  NEREID_TRY_STATUS(
      checked(library().init_rank(&communicator, static_cast<int>(count), id, static_cast<int>(rank)),
              "joining the others"));
  return Nccl(communicator, device);
}

Nccl::~Nccl() {
  if (communicator_ != nullptr) (void)library().destroy(communicator_);
}

Status Nccl::sum_to_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) {
  const c10::DeviceGuard guard(device_);
  const int type = type_of(flat);
  return for_each_part(flat, borders, "a sum", [&](void* data, size_t count, int owner) {
    return library().reduce(data, data, count, type, kNcclSum, owner, communicator_, kDefaultStream);
  });
}

Status Nccl::share_from_owners(const at::Tensor& flat, const std::vector<int64_t>& borders) {
  const c10::DeviceGuard guard(device_);
  const int type = type_of(flat);
  return for_each_part(flat, borders, "a copy to all", [&](void* data, size_t count, int owner) {
    return library().broadcast(data, data, count, type, owner, communicator_, kDefaultStream);
  });
}

}  // namespace nereid::train
