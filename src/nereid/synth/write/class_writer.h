// Classes and functions around written bodies, with their docstrings.
#pragma once

#include <string>

#include "nereid/synth/write/commentary.h"
#include "nereid/synth/write/constructor.h"

namespace nereid::synth {

class ClassWriter {
 public:
  ClassWriter(const Program& program, const CodeStyle& style, Commentary& commentary,
              Constructor& constructor)
      : program_(program), style_(style), commentary_(commentary), constructor_(constructor) {}

  // Places in the body count from the beginning of `to` afterwards.
  void write_function(Body& body, const std::string& name, std::string& to);
  void write_class(Body& body, const std::string& name, std::string& to);

 private:
  void parameter_list(const Body& body, std::string& to) const;
  void class_docstring(const Body& body, bool model, std::string& to);
  void forward_docstring(const Body& body, std::string& to) const;

  const Program& program_;
  const CodeStyle& style_;
  Commentary& commentary_;
  Constructor& constructor_;
};

}  // namespace nereid::synth
