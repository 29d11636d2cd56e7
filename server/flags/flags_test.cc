// Tests how the command line sets the server's options, including defaults and errors.
#include "server/flags/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace colcast {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

std::string WriteFile(const std::string& text) {
  const std::string path = testing::TempDir() + "flags_test.pbtxt";
  std::ofstream(path) << text;
  return path;
}

Status Parse(std::vector<std::string> arguments, ServerOptions* options) {
  arguments.insert(arguments.begin(), {"server", "--model_base_path=/models/m"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseFlags(static_cast<int>(argv.size()), argv.data(), options);
}

ServerOptions Parsed(const std::vector<std::string>& arguments) {
  ServerOptions options;
  const Status status = Parse(arguments, &options);
  EXPECT_TRUE(status.ok()) << status.message;
  return options;
}

std::string Error(const std::vector<std::string>& arguments) {
  ServerOptions options;
  return Parse(arguments, &options).message;
}

TEST(FlagsTest, ErrorsNameTheFlagWithTheInvalidValue) {
  const struct {
    const char* flag;
    const char* message;
  } kCases[] = {
      {"--caller_header=X-Caller", "--caller_header: \"X-Caller\", expected a name in lower case"},
      {"--caller_header=grpc-timeout", "--caller_header: \"grpc-timeout\""},
      {"--caller_header=caller-bin", "--caller_header: \"caller-bin\""},
      {"--max_request_rows=0", "--max_request_rows=0: expected at least 1"},
      {"--max_expanded_bytes=-1", "--max_expanded_bytes=-1: expected at least 0"},
      {"--example_transcoding=fast",
       "--example_transcoding=fast: expected one of exact, late, off"},
      {"--grpc_channel_arguments=grpc.a=1,grpc.b",
       "--grpc_channel_arguments: \"grpc.b\" is not NAME=VALUE"},
      {"--model_service=yes", "--model_service=yes: expected one of on, local, off"},
      {"--model_base_path=", "--model_base_path is required"},
      {"--log_format=xml", "--log_format=xml: expected one of text, json"},
      {"--drain_seconds=nan", "--drain_seconds=nan: expected at least 0"},
      {"--rest_api_port=-2", "--rest_api_port=-2: expected at least -1"},
      {"--request_log_directory=logs", "--request_log_directory is \"logs\""},
      {"--batching_parameters_file=x", "is set without setting --enable_batching to true"},
      {"--offload_rows=1", "--offload_rows was removed: Envoy or the client routes large requests"},
      {"--shadow_model_version=m:4:1", "--shadow_model_version was removed: log a share"},
      {"--graph_choices=/a/file", "--graph_choices needs --graph_optimization=fast"},
      {"--prefer_tflite_model", "--prefer_tflite_model=true: refused: "},
      {"--mixed_precision=bfloat16", "precision"},
      {"--platform_config_file=x", "--tensorflow_session_config_file"},
      {"--use_alts_credentials", "--ssl_config_file"},
      {"--max_queued_requests=0", "--max_queued_requests=0: expected at least 1"},
      {"--grpc_channel_arguments==3", "--grpc_channel_arguments: \"=3\" is not NAME=VALUE"},
      {"--grpc_channel_arguments=a=", "--grpc_channel_arguments: \"a=\" is not NAME=VALUE"},
      {"--tensorflow_session_config_file=/none", "/none"},
      {"--model_config_file=/none", "/none"},
      {"--ssl_config_file=/none", "/none"},
  };
  for (const auto& one : kCases) EXPECT_THAT(Error({one.flag}), HasSubstr(one.message));
}

TEST(FlagsTest, ARequestRunsOnItsWorkersThreadByDefault) {
  const ServerOptions options = Parsed({});
  EXPECT_EQ(options.engine.intra_op_parallelism, 1);
  EXPECT_EQ(options.engine.inter_op_parallelism, 0);
  EXPECT_GE(options.workers.num_workers, 1);
  EXPECT_FALSE(options.http.has_value());
  EXPECT_EQ(options.caller_header, "");
  EXPECT_FALSE(options.tracing.has_value());
  EXPECT_TRUE(options.warnings.empty());
}

TEST(FlagsTest, ThreadCountsOfTheSessionFileApplyWithoutAFlag) {
  const std::string file =
      WriteFile("intra_op_parallelism_threads: 3 inter_op_parallelism_threads: 4");
  const ServerOptions options =
      Parsed({"--tensorflow_session_config_file=" + file, "--tensorflow_intra_op_parallelism=2"});
  EXPECT_EQ(options.engine.intra_op_parallelism, 2);
  EXPECT_EQ(options.engine.inter_op_parallelism, 4);
}

TEST(FlagsTest, ThreadCountsOfTheSessionFileAreLimited) {
  for (const char* const text :
       {"intra_op_parallelism_threads: 1000000000", "inter_op_parallelism_threads: 1000000000",
        "session_inter_op_thread_pool { num_threads: 1000000000 }"}) {
    EXPECT_THAT(Error({"--tensorflow_session_config_file=" + WriteFile(text)}),
                HasSubstr("got 1000000000, expected at most 4096"))
        << text;
  }
}

TEST(FlagsTest, ErrorsNameTheMalformedFileAndItsFlag) {
  const std::string path = WriteFile("no_such_field: 3");
  for (const std::string flag : {"--tensorflow_session_config_file", "--monitoring_config_file",
                                 "--ssl_config_file", "--item_table_config_file"}) {
    EXPECT_THAT(Error({flag + "=" + path}), HasSubstr(flag + ": " + path));
  }
}

TEST(FlagsTest, ThePrometheusPageHasAPathIfItIsEnabled) {
  const struct {
    const char* config;
    const char* path;
  } kCases[] = {
      {"", ""},
      {"prometheus_config { path: '/metrics' }", ""},
      {"prometheus_config { enable: true }", "/monitoring/prometheus/metrics"},
      {"prometheus_config { enable: true path: '/metrics' }", "/metrics"},
  };
  for (const auto& one : kCases) {
    const std::string flag = "--monitoring_config_file=" + WriteFile(one.config);
    EXPECT_EQ(Parsed({flag}).metrics_path, one.path) << one.config;
  }
  const std::string file = WriteFile("prometheus_config { enable: true path: '/' }");
  EXPECT_THAT(Error({"--monitoring_config_file=" + file}),
              HasSubstr("path \"/\" must begin with a /"));
}

TEST(FlagsTest, AnItemTableFlagNamesModelKeyAndFolder) {
  const auto tables = Parsed({"--item_table=m:item_id:/items,m:shop_id:/a:b"}).item_tables;
  ASSERT_EQ(tables.size(), 2);
  EXPECT_EQ(tables[0].model, "m");
  EXPECT_EQ(tables[0].key, "item_id");
  EXPECT_EQ(tables[0].base_path, "/items");
  EXPECT_FALSE(tables[0].defaults_for_unknown);
  EXPECT_EQ(tables[1].base_path, "/a:b");
  for (const std::string wrong : {"m:item_id", "m::/items", "m:a:/x,m:a:/y"}) {
    EXPECT_THAT(Error({"--item_table=" + wrong}), HasSubstr("--item_table: ")) << wrong;
  }
}

TEST(FlagsTest, AFileConfiguresItemTablesInDetail) {
  const std::string flag = "--item_table_config_file=";
  const auto tables =
      Parsed({flag + WriteFile("table { model: 'm' domain: 'shop' key: 'shop_id' base_path: "
                               "'/shops' poll_wait_seconds: 0.5 unknown_keys: DEFAULTS }")})
          .item_tables;
  ASSERT_EQ(tables.size(), 1);
  EXPECT_EQ(tables[0].domain, "shop");
  EXPECT_EQ(tables[0].poll_wait, milliseconds(500));
  EXPECT_TRUE(tables[0].defaults_for_unknown);
  EXPECT_THAT(Error({flag + WriteFile("table { model: 'm' key: 'shop_id' }")}),
              HasSubstr("--item_table_config_file: "));
  for (const std::string wrong : {"-1", "1e300", "nan", "inf"}) {
    EXPECT_THAT(Error({flag + WriteFile("table { model: 'm' key: 'k' base_path: '/k' "
                                        "poll_wait_seconds: " +
                                        wrong + " }")}),
                HasSubstr("poll_wait_seconds of /k is not between 0 and 1e+09"));
  }
}

TEST(FlagsTest, ChannelArgumentsHaveGrpcsNames) {
  const ServerOptions options =
      Parsed({"--grpc_channel_arguments=grpc.max_connection_age_ms=2000,,grpc.b=x=y"});
  EXPECT_EQ(options.grpc.connections.max_age, milliseconds(2000));
  EXPECT_THAT(options.warnings, ElementsAre("--grpc_channel_arguments: grpc.b=x=y has no effect"));
}

TEST(FlagsTest, ModelsComeFromFlagsOrAFile) {
  const ServerOptions one = Parsed({"--model_name=m"});
  ASSERT_EQ(one.models.models.size(), 1u);
  EXPECT_EQ(one.models.models[0].name, "m");
  EXPECT_EQ(one.models.models[0].base_path, "/models/m");
  EXPECT_TRUE(one.models.fail_if_nothing_loads);
  const std::string file = WriteFile(R"(model_config_list {
    config { name: "a" base_path: "/a" model_platform: "tensorflow" }
    config { name: "b" base_path: "/b" model_platform: "tensorflow" } })");
  const ServerOptions several = Parsed({"--model_config_file=" + file});
  ASSERT_EQ(several.models.models.size(), 2u);
  EXPECT_EQ(several.models.models[1].base_path, "/b");
  EXPECT_FALSE(several.models.fail_if_nothing_loads);
}

TEST(FlagsTest, ReadyLabelsArePairsOfModelAndLabel) {
  const auto labels = Parsed({"--ready_labels=m:stable,m:canary"}).models.ready_labels;
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_EQ(labels[1].model, "m");
  EXPECT_EQ(labels[1].label, "canary");
  for (const std::string wrong : {"m", "m:", ":stable", "m:a:b", "m:stable,m"}) {
    EXPECT_THAT(Error({"--ready_labels=" + wrong}), HasSubstr("--ready_labels: \"")) << wrong;
  }
}

TEST(FlagsTest, RestFlagsAreParsed) {
  const ServerOptions options = Parsed({"--rest_api_port=-1", "--max_request_bytes=1000",
                                        "--rest_api_timeout_in_ms=250", "--host=127.0.0.1"});
  ASSERT_TRUE(options.http.has_value());
  EXPECT_EQ(options.http->host, "127.0.0.1");
  EXPECT_EQ(options.http->port, 0);
  EXPECT_EQ(options.http->max_body_bytes, 1000u);
  EXPECT_EQ(options.model_api.max_body_bytes, 1000u);
  EXPECT_EQ(options.model_api.timeout, milliseconds(250));
}

TEST(FlagsTest, LogDrainAndCallerFlagsAreParsed) {
  const ServerOptions options =
      Parsed({"--log_format=json", "--drain_seconds=1.5", "--caller_header=x-caller"});
  EXPECT_EQ(options.caller_header, "x-caller");
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.drain, milliseconds(1500));
  EXPECT_EQ(options.drain_timeout, milliseconds(30000));
}

TEST(FlagsTest, OpLibraryMayBeRepeated) {
  EXPECT_THAT(Parsed({"--op_library=/a.so", "--op_library=/b.so"}).op_libraries,
              ElementsAre("/a.so", "/b.so"));
}

TEST(FlagsTest, FlagsWithoutEffectCauseWarnings) {
  EXPECT_THAT(Parsed({"--grpc_max_threads=8", "--xla_cpu_compilation_enabled=false",
                      "--enable_profiler=false"})
                  .warnings,
              ElementsAre(HasSubstr("--grpc_max_threads=8 has no effect: ")));
}

TEST(FlagsTest, TracingNeedsAnEndpoint) {
  EXPECT_THAT(Error({"--trace_sampling_ratio=0.5"}), HasSubstr("--trace_endpoint"));
  EXPECT_THAT(Error({"--trace_endpoint=https://collector:4318"}),
              HasSubstr("https://collector:4318"));
  const auto tracing =
      Parsed({"--trace_endpoint=http://collector:4318/v1/traces", "--trace_sampling_ratio=0.5"})
          .tracing;
  ASSERT_TRUE(tracing.has_value());
  EXPECT_EQ(tracing->endpoint.host, "collector");
  EXPECT_EQ(tracing->sampling_ratio, 0.5);
}

TEST(FlagsTest, TheEnvironmentNamesTheTraceEndpointUnlessTheFlagDoes) {
  setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://of-environment:4318", 1);
  setenv("OTEL_SERVICE_NAME", "ranker", 1);
  const ServerOptions options = Parsed({});
  EXPECT_EQ(options.tracing->endpoint.host, "of-environment");
  EXPECT_EQ(options.tracing->endpoint.target, "/v1/traces");
  EXPECT_EQ(options.tracing->service_name, "ranker");
  EXPECT_EQ(Parsed({"--trace_endpoint=http://of-flag/x"}).tracing->endpoint.host, "of-flag");
  unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  unsetenv("OTEL_SERVICE_NAME");
}

}  // namespace
}  // namespace colcast
