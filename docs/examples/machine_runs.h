// Machines that examples run on, times of calls there, and --figures FILE.
#pragma once

#include "timing.h"

#include <tressel/tressel.h>

#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace machine_runs {

inline bool is_simulated(const std::string &machine) { return machine.starts_with("sim:"); }
/// What times of the machine are called in a table.
inline const char *word_of(const std::string &machine) { return is_simulated(machine) ? "simulated" : "by the clock"; }

/// For sizes that only a machine of hardware computes: a simulated one keeps the time alone.
inline void use_at_full_size(const std::string &machine) {
  tressel::use_machine(machine, {.computes = !is_simulated(machine)});
}
inline void print_title(const std::string &machine) {
  std::cout << "On " << machine
            << (is_simulated(machine) ? ", which is not there: virtual times by its figures.\n"
                                      : ": times by the clock.\n");
}

/// Values of a full-size operand, which a simulated machine does not look at. A card's speed depends on them: products
/// of zeros take less power.
inline tressel::Tensor operand(const std::string &machine, const tressel::Shape &shape, uint64_t seed,
                               double scale = 1) {
  return is_simulated(machine) ? tressel::zeros(shape) : tressel::rng::normal(shape, seed) * scale;
}

/// Milliseconds of a call by the machine's clock, when its Variables are there: virtual time is the same at each call,
/// of others it is the median of five.
template <typename F, typename... Inputs>
double milliseconds(const std::string &machine, const F &function, const Inputs &...inputs) {
  std::vector<double> samples;
  for (int i = is_simulated(machine) ? 1 : 5; i >= 0; --i) {
    tressel::wait_all();
    const double before = tressel::machine_seconds();
    const auto results = function(inputs...);
    tressel::wait_all();
    samples.push_back((tressel::machine_seconds() - before) * 1e3);
  }
  samples.erase(samples.begin()); // compiles, and brings Variables there
  return timing::median(std::move(samples));
}

/// Figures by name, written as a JSON object into the file that follows --figures among the arguments (both are taken
/// out), if it is there.
class Figures {
public:
  Figures(int &argc, char **argv) : file_(timing::option("--figures", argc, argv)) {}
  void add(const std::string &name, double value) {
    std::ostringstream text;
    text << (text_.empty() ? "{\"" : ", \"") << name << "\": " << std::setprecision(9) << value;
    text_ += text.str();
  }
  ~Figures() {
    if (!file_.empty())
      std::ofstream(file_) << (text_.empty() ? "{" : text_) << "}\n";
  }

private:
  std::string file_, text_;
};

} // namespace machine_runs
