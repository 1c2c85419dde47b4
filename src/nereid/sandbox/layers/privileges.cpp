#include "nereid/sandbox/layers/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nereid::sandbox {

Status drop_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return our_error("no_new_privs: {}", strerror(errno));
  // Both need a capability, and without any there is nothing to lock away.
  ::prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED);
  for (int capability = 0; capability < 64; ++capability)
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0)
    return our_error("dropping capabilities: {}", strerror(errno));
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return our_error("PR_SET_DUMPABLE: {}", strerror(errno));
  return ok_status();
}

}  // namespace nereid::sandbox
