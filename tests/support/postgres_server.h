// A PostgreSQL server of a test's own (tests/postgres_server.py), which ends with it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace nereid {

class PostgresServer {
 public:
  // The server of this process, started at its first use.
  static PostgresServer& shared() {
    static PostgresServer server;
    return server;
  }
  PostgresServer() {
    int in[2], out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execlp("python3", "python3", NEREID_SOURCE_DIR "/tests/postgres_server.py", nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    commands_ = in[1], answers_ = out[0];
    uri_ = line();
    EXPECT_TRUE(uri_.starts_with("postgresql://")) << uri_;
  }
  ~PostgresServer() {
    ::close(commands_);
    ::waitpid(pid_, nullptr, 0);
    ::close(answers_);
  }
  PostgresServer(const PostgresServer&) = delete;

  // Of a superuser without a password.
  const std::string& uri() const { return uri_; }
  std::string uri(const std::string& user, const std::string& database = "postgres") const {
    return "postgresql://" + user + "@/" + database + uri_.substr(uri_.find('?'));
  }
  // start, stop, kill, freeze, thaw, terminate: see the script.
  void operator()(std::string command) {
    command += '\n';
    ASSERT_EQ(::write(commands_, command.data(), command.size()), static_cast<ssize_t>(command.size()));
    ASSERT_EQ(line(), "ok") << command;
  }

 private:
  std::string line() {
    std::string text;
    for (char c = 0; ::read(answers_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

  pid_t pid_ = -1;
  int commands_ = -1, answers_ = -1;
  std::string uri_;
};

}  // namespace nereid
