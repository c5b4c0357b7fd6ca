// What the double of every CUDA library reports to: how often each event happened, and how many bytes it moved.
#pragma once
#include <cstddef>

extern "C" {
/// Counts an event, `launch` say, and the event with its detail, `launch:kernel`.
void ledger_note(const char* event, const char* detail, std::size_t bytes);
/// Counts a launch; while the thread captures a graph it is part of the graph and counts as `captured`. Returns the
/// error of a lost device, else 0.
int ledger_launch(const char* kernel);
/// For a call that CUDA refuses to every thread while one captures in global mode: the error, and the end of the
/// capture; else 0. Counts as `refused`.
int ledger_refuse(const char* call);
}
