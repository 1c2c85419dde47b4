// nereid-worker-pool: keeps warm workers between commands, see worker_pool.h. Started by a command, with a
// listening socket as descriptor 3.
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nereid/sandbox/zygote/worker_pool.h"

int main() {
  struct stat info{};
  if (::fstat(3, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    ::fprintf(stderr,
              "nereid-worker-pool is started by nereid (NEREID_KEEP_WARM=SECONDS), with a socket as "
              "descriptor 3\n");
    return 2;
  }
  if (::chdir("/") != 0) return 1;  // no folder is kept busy
  ::signal(SIGPIPE, SIG_IGN), ::signal(SIGINT, SIG_IGN), ::signal(SIGHUP, SIG_IGN);
  nereid::sandbox::keep(nereid::Fd(3));
}
