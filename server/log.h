// One line a message on standard error: time, severity, text.
#ifndef COLCAST_SERVER_LOG_H_
#define COLCAST_SERVER_LOG_H_

#include <string_view>

namespace colcast {

void LogInfo(std::string_view message);
void LogWarning(std::string_view message);
void LogError(std::string_view message);

}  // namespace colcast

#endif  // COLCAST_SERVER_LOG_H_
