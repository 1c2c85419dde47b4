// The reference's source, cut into what a file of ours takes over: its imports and constants, what its
// constructor needs, and the parameters of forward. By indentation and brackets; nothing of it is run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::compiler {

struct Parameter {
  std::string name;
  bool rest = false;  // *name
};

struct SourceFile {
  std::vector<std::string> imports;  // each a statement
  std::string needed;                // top-level code that the class needs, imports apart
  std::string bases;                 // "nn.Module"
  std::string members;    // of the class but forward, indented as in a class: constructor and helpers
  std::string signature;  // "self, x, mask=None"
  std::vector<Parameter> parameters;  // of forward, without self
  std::string keywords = {};          // "named" of **named; empty where there is none
};

// `new_name` stands for `class_name` wherever the taken code names it. `Model = Gate` is the class Gate of
// the file. `also`: other top-level names that the file needs. `signature`: of a forward that the file does
// not hold (an imported base class, a class that is imported or made by a function); without one such a file
// is an error. Of a class that is not in the file the new one takes what an instance holds.
Result<SourceFile> read_source(const std::string& file, const std::string& source,
                               const std::string& class_name, const std::string& new_name,
                               const std::set<std::string>& also = {}, const std::string& signature = "");

// `members` of a class with these statements at the end of its constructor. Empty where there is none, or
// it may return before.
std::string with_constructor(const std::string& members, const std::vector<std::string>& statements);

// How forward's body reaches the argument of this place or name; empty where it cannot.
std::string argument_text(const SourceFile& file, size_t place);
std::string argument_text(const SourceFile& file, const std::string& name);

// The source as a function of Python's that defines all of it anew and returns its class: no name of it meets
// one outside. Without get_inputs, get_init_inputs and what runs as a program. An Error names what no
// function may hold.
Result<std::string> as_function(const std::string& source, const std::string& name,
                                const std::string& class_name);

// The source without comments and docstrings.
std::string without_prose(const std::string& source);

// Of each line, from 1: the one variable that a statement beginning there assigns, or nothing. Names of
// forward's parameters do not count: they are something else at the top of the forward that is written.
std::vector<std::string> assigned_names(const std::string& source);

}  // namespace nereid::compiler
