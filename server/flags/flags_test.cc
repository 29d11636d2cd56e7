// What each file of flags makes of the command line: defaults, values, and the errors that name a
// flag.
#include "server/flags/flags.h"

#include <absl/flags/commandlineflag.h>
#include <absl/flags/reflection.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/flags/parts.h"

namespace colcast::flags {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class FlagsTest : public testing::Test {
 protected:
  static void Set(const std::string& name, const std::string& value) {
    std::string error;
    absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
    ASSERT_NE(flag, nullptr) << name;
    ASSERT_TRUE(flag->ParseFrom(value, &error)) << error;
  }
  static std::string WriteFile(const std::string& text) {
    const std::string path = testing::TempDir() + "flags_test.pbtxt";
    std::ofstream(path) << text;
    return path;
  }

 private:
  const absl::FlagSaver saver_;  // puts every flag back
};

std::string CallerError() {
  std::optional<callers::NameSource> callers;
  return ReadCallerFlags(/*certificates=*/false, &callers).message;
}
std::string EngineError() {
  engine::Options options;
  return ReadEngineFlags(&options).message;
}
std::string GrpcError() {
  rpc::GrpcServer::Options options;
  return ReadGrpcFlags(&options).message;
}
std::string ModelError() {
  models::ModelManager::Options options;
  return ReadModelFlags("", &options).message;
}
std::string OperationError() {
  LogFormat format;
  milliseconds drain, timeout;
  return ReadOperationFlags(&format, &drain, &timeout).message;
}
std::string RequestError() {
  scheduling::WorkerPool::Options workers;
  TensorEncoding encoding;
  inference::CallOptions calls;
  bool num_workers_given = false;
  return ReadRequestFlags(&workers, &num_workers_given, &encoding, &calls).message;
}
std::string RestError() {
  std::optional<http::HttpServer::Options> http;
  http::ModelApiOptions model_api;
  return ReadRestFlags(&http, &model_api).message;
}

TEST_F(FlagsTest, AFlagsFileIsNamedFromTheSourcesRootOn) {
  EXPECT_EQ(absl::FindCommandLineFlag("port")->Filename(), "server/flags/grpc_flags.cc");
}

TEST_F(FlagsTest, AValueThatCannotBeIsAnErrorThatNamesTheFlag) {
  const struct {
    std::string (*read)();
    const char* flag;
    const char* value;
    const char* message;
  } kCases[] = {
      {CallerError, "caller_header", "X-Caller",
       "--caller_header: \"X-Caller\", expected a name in lower case"},
      {CallerError, "caller_header", "grpc-timeout", "--caller_header: \"grpc-timeout\""},
      {CallerError, "caller_header", "caller-bin", "--caller_header: \"caller-bin\""},
      {CallerError, "caller_certificate", "true",
       "--caller_certificate needs an --ssl_config_file with client_verify: true"},
      {EngineError, "max_request_rows", "0", "--max_request_rows=0: expected at least 1"},
      {EngineError, "max_expanded_bytes", "-1", "--max_expanded_bytes=-1: expected at least 0"},
      {EngineError, "example_transcoding", "fast",
       "--example_transcoding: expected exact, late or off, got \"fast\""},
      {EngineError, "graph_optimization", "late",
       "--graph_optimization: expected exact, fast or off, got \"late\""},
      {EngineError, "graph_tolerance", "1.5", "--graph_tolerance=1.5: expected at most 1"},
      {EngineError, "graph_measuring_ms", "-1", "--graph_measuring_ms=-1: expected at least 0"},
      {GrpcError, "port", "65536", "--port=65536: expected at most 65535"},
      {GrpcError, "grpc_channel_arguments", "grpc.a=1,grpc.b",
       "--grpc_channel_arguments: \"grpc.b\" is not NAME=VALUE"},
      {GrpcError, "model_service", "yes",
       "--model_service: expected on, local or off, got \"yes\""},
      {ModelError, "model_base_path", "", "--model_base_path is required"},
      {ModelError, "max_num_load_retries", "-1", "--max_num_load_retries=-1: expected at least 0"},
      {OperationError, "log_format", "xml", "--log_format=xml: expected text or json"},
      {OperationError, "drain_seconds", "nan", "--drain_seconds=nan: expected at least 0"},
      {RequestError, "max_queued_requests", "0", "--max_queued_requests=0: expected at least 1"},
      {RestError, "rest_api_port", "-2", "--rest_api_port=-2: expected at least -1"},
  };
  for (const auto& one : kCases) {
    const absl::FlagSaver saver;
    Set(one.flag, one.value);
    EXPECT_THAT(one.read(), HasSubstr(one.message)) << one.flag;
  }
}

TEST_F(FlagsTest, WithoutFlagsARequestRunsOnItsWorkersThread) {
  engine::Options options;
  ASSERT_TRUE(ReadEngineFlags(&options).ok());
  EXPECT_EQ(options.intra_op_parallelism, 1);
  EXPECT_EQ(options.inter_op_parallelism, 0);
  EXPECT_EQ(options.example_transcoding, engine::ExampleTranscoding::kExact);
  EXPECT_EQ(options.graph_optimization, engine::GraphOptimization::kExact);
}

TEST_F(FlagsTest, NobodyAsksForCallersUnlessAFlagDoes) {
  std::optional<callers::NameSource> callers;
  ASSERT_TRUE(ReadCallerFlags(/*certificates=*/true, &callers).ok());
  EXPECT_FALSE(callers.has_value());
  Set("caller_certificate", "true");
  ASSERT_TRUE(ReadCallerFlags(/*certificates=*/true, &callers).ok());
  ASSERT_TRUE(callers.has_value());
  EXPECT_TRUE(callers->certificate);
  Set("caller_header", "x-caller");
  EXPECT_EQ(ReadCallerFlags(/*certificates=*/true, &callers).message,
            "--caller_header and --caller_certificate: expected one of them");
}

TEST_F(FlagsTest, ThreadsOfTheSessionFileCountWhereAFlagDoesNot) {
  Set("tensorflow_session_config_file",
      WriteFile("intra_op_parallelism_threads: 3 inter_op_parallelism_threads: 4"));
  Set("tensorflow_intra_op_parallelism", "2");
  engine::Options options;
  ASSERT_TRUE(ReadEngineFlags(&options).ok());
  ASSERT_TRUE(ReadSessionFlags(&options).ok());
  EXPECT_EQ(options.intra_op_parallelism, 2);
  EXPECT_EQ(options.inter_op_parallelism, 4);
}

TEST_F(FlagsTest, AFileThatDoesNotParseIsNamedWithItsFlag) {
  const std::string path = WriteFile("no_such_field: 3");
  Set("tensorflow_session_config_file", path);
  Set("monitoring_config_file", path);
  Set("ssl_config_file", path);
  engine::Options options;
  std::string metrics_path;
  std::optional<TlsConfig> tls;
  EXPECT_THAT(ReadSessionFlags(&options).message,
              HasSubstr("--tensorflow_session_config_file: " + path));
  EXPECT_THAT(ReadMonitoringFlags(&metrics_path).message,
              HasSubstr("--monitoring_config_file: " + path));
  EXPECT_THAT(ReadTlsFlags(&tls).message, HasSubstr("--ssl_config_file: " + path));
}

TEST_F(FlagsTest, PrometheusHasAPathOnceItIsEnabled) {
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
    Set("monitoring_config_file", WriteFile(one.config));
    std::string path;
    EXPECT_TRUE(ReadMonitoringFlags(&path).ok()) << one.config;
    EXPECT_EQ(path, one.path) << one.config;
  }
  Set("monitoring_config_file", WriteFile("prometheus_config { enable: true path: '/' }"));
  std::string path;
  EXPECT_THAT(ReadMonitoringFlags(&path).message, HasSubstr("path \"/\" has to begin with a /"));
}

TEST_F(FlagsTest, ItemTablesHaveAModelAKeyAndAFolder) {
  std::vector<items::ItemTableConfig> tables;
  Set("item_table", "m:item_id:/items,m:shop_id:/a:b");
  ASSERT_TRUE(ReadItemFlags(&tables).ok());
  ASSERT_EQ(tables.size(), 2);
  EXPECT_EQ(tables[0].model, "m");
  EXPECT_EQ(tables[0].key, "item_id");
  EXPECT_EQ(tables[0].base_path, "/items");
  EXPECT_FALSE(tables[0].defaults_for_unknown);
  EXPECT_EQ(tables[1].base_path, "/a:b");
  for (const char* const wrong : {"m:item_id", "m::/items", "m:a:/x,m:a:/y"}) {
    Set("item_table", wrong);
    tables.clear();
    EXPECT_THAT(ReadItemFlags(&tables).message, HasSubstr("--item_table: ")) << wrong;
  }
}

TEST_F(FlagsTest, AFileSaysMoreOfItemTables) {
  std::vector<items::ItemTableConfig> tables;
  Set("item_table_config_file",
      WriteFile("table { model: 'm' domain: 'shop' key: 'shop_id' base_path: '/shops' "
                "poll_wait_seconds: 0.5 unknown_keys: DEFAULTS }"));
  ASSERT_TRUE(ReadItemFlags(&tables).ok());
  ASSERT_EQ(tables.size(), 1);
  EXPECT_EQ(tables[0].domain, "shop");
  EXPECT_EQ(tables[0].poll_wait, milliseconds(500));
  EXPECT_TRUE(tables[0].defaults_for_unknown);
  Set("item_table_config_file", WriteFile("table { model: 'm' key: 'shop_id' }"));
  EXPECT_THAT(ReadItemFlags(&tables).message, HasSubstr("--item_table_config_file: "));
}

TEST_F(FlagsTest, ShadowVersionsHaveANumberOrALabelAndAShare) {
  models::ModelManager::Options models;
  models.models.resize(1);
  models.models[0].name = "m";
  std::vector<shadow::ShadowVersion> versions;
  std::vector<std::string> warnings;
  Set("shadow_model_version", "m:4:0.05,n:canary:1");
  ASSERT_TRUE(ReadShadowFlags(models, &versions, &warnings).ok());
  ASSERT_EQ(versions.size(), 2);
  EXPECT_EQ(versions[0].spec.name, "m");
  EXPECT_EQ(versions[0].spec.version, 4);
  EXPECT_EQ(versions[0].share, 0.05);
  EXPECT_EQ(versions[1].spec.version_label, "canary");
  EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("no model \"n\" is configured")));
  for (const char* const wrong :
       {"m", "m:4", ":4:1", "m::1", "m:4:0", "m:4:1.5", "m:4:nan", "m:4:5%", "m:4:1,m:5:1"}) {
    Set("shadow_model_version", wrong);
    versions.clear();
    EXPECT_THAT(ReadShadowFlags(models, &versions, &warnings).message,
                HasSubstr("--shadow_model_version: "))
        << wrong;
  }
}

TEST_F(FlagsTest, ChannelArgumentsAreNamesWithValues) {
  Set("grpc_channel_arguments", "grpc.a=1,,grpc.b=x=y");
  rpc::GrpcServer::Options options;
  ASSERT_TRUE(ReadGrpcFlags(&options).ok());
  EXPECT_THAT(options.channel_arguments, ElementsAre(Pair("grpc.a", "1"), Pair("grpc.b", "x=y")));
}

TEST_F(FlagsTest, OneModelOrAFileOfThem) {
  models::ModelManager::Options options;
  Set("model_name", "m");
  Set("model_base_path", "/models/m");
  ASSERT_TRUE(ReadModelFlags("", &options).ok());
  ASSERT_EQ(options.models.size(), 1u);
  EXPECT_EQ(options.models[0].name, "m");
  EXPECT_TRUE(options.fail_if_nothing_loads);

  models::ModelManager::Options from_file;
  Set("model_config_file", WriteFile(R"(model_config_list {
    config { name: "a" base_path: "/a" model_platform: "tensorflow" }
    config { name: "b" base_path: "/b" model_platform: "tensorflow" } })"));
  ASSERT_TRUE(ReadModelFlags("", &from_file).ok());
  ASSERT_EQ(from_file.models.size(), 2u);
  EXPECT_EQ(from_file.models[1].base_path, "/b");
  EXPECT_FALSE(from_file.fail_if_nothing_loads);
}

TEST_F(FlagsTest, ReadyLabelsAreModelsWithLabels) {
  models::ModelManager::Options options;
  Set("model_base_path", "/models/m");
  Set("ready_labels", "m:stable,m:canary");
  ASSERT_TRUE(ReadModelFlags("", &options).ok());
  ASSERT_EQ(options.ready_labels.size(), 2u);
  EXPECT_EQ(options.ready_labels[1].model, "m");
  EXPECT_EQ(options.ready_labels[1].label, "canary");
  for (const char* const wrong : {"m", "m:", ":stable", "m:a:b", "m:stable,m"}) {
    Set("ready_labels", wrong);
    EXPECT_THAT(ModelError(), HasSubstr("--ready_labels: \"")) << wrong;
  }
}

TEST_F(FlagsTest, HttpIsOffUntilItHasAPort) {
  std::optional<http::HttpServer::Options> http;
  http::ModelApiOptions model_api;
  ASSERT_TRUE(ReadRestFlags(&http, &model_api).ok());
  EXPECT_FALSE(http.has_value());
  Set("rest_api_port", "-1");
  Set("max_request_bytes", "1000");
  Set("rest_api_timeout_in_ms", "250");
  ASSERT_TRUE(ReadRestFlags(&http, &model_api).ok());
  ASSERT_TRUE(http.has_value());
  EXPECT_EQ(http->port, 0);
  EXPECT_EQ(http->max_body_bytes, 1000u);
  EXPECT_EQ(model_api.max_body_bytes, 1000u);
  EXPECT_EQ(model_api.timeout, milliseconds(250));
}

TEST_F(FlagsTest, OperationIsGivenInSeconds) {
  Set("log_format", "json");
  Set("drain_seconds", "1.5");
  LogFormat format = LogFormat::kText;
  milliseconds drain{}, timeout{};
  ASSERT_TRUE(ReadOperationFlags(&format, &drain, &timeout).ok());
  EXPECT_EQ(format, LogFormat::kJson);
  EXPECT_EQ(drain, milliseconds(1500));
  EXPECT_EQ(timeout, milliseconds(30000));
}

TEST_F(FlagsTest, WhatHasNoEffectIsToldAndWhatWouldChangeAnswersIsRefused) {
  std::vector<std::string> warnings;
  ASSERT_TRUE(ReadServingFlags(&warnings).ok());
  EXPECT_THAT(warnings, ElementsAre());
  Set("grpc_max_threads", "8");
  ASSERT_TRUE(ReadServingFlags(&warnings).ok());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("--grpc_max_threads=8 has no effect: ")));
  Set("prefer_tflite_model", "true");
  EXPECT_THAT(ReadServingFlags(&warnings).message,
              HasSubstr("--prefer_tflite_model=true is refused: "));
}

TEST_F(FlagsTest, NothingIsTracedWithoutAnEndpoint) {
  std::optional<tracing::Tracer::Options> options;
  ASSERT_TRUE(ReadTracingFlags(&options).ok());
  EXPECT_FALSE(options.has_value());
  Set("trace_sampling_ratio", "0.5");
  EXPECT_THAT(ReadTracingFlags(&options).message, HasSubstr("--trace_endpoint"));
  Set("trace_endpoint", "https://collector:4318");
  EXPECT_THAT(ReadTracingFlags(&options).message, HasSubstr("https://collector:4318"));
  Set("trace_endpoint", "http://collector:4318/v1/traces");
  ASSERT_TRUE(ReadTracingFlags(&options).ok());
  EXPECT_EQ(options->endpoint.host, "collector");
  EXPECT_EQ(options->sampling_ratio, 0.5);
  Set("trace_sampling_ratio", "1.5");
  EXPECT_THAT(ReadTracingFlags(&options).message, HasSubstr("trace_sampling_ratio"));
}

TEST_F(FlagsTest, OpenTelemetrysEnvironmentNamesTheEndpointWhereTheFlagDoesNot) {
  setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://of-environment:4318", 1);
  setenv("OTEL_SERVICE_NAME", "ranker", 1);
  std::optional<tracing::Tracer::Options> options;
  ASSERT_TRUE(ReadTracingFlags(&options).ok());
  EXPECT_EQ(options->endpoint.host, "of-environment");
  EXPECT_EQ(options->endpoint.target, "/v1/traces");
  EXPECT_EQ(options->service_name, "ranker");
  Set("trace_endpoint", "http://of-flag/x");
  ASSERT_TRUE(ReadTracingFlags(&options).ok());
  EXPECT_EQ(options->endpoint.host, "of-flag");
  unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  unsetenv("OTEL_SERVICE_NAME");
}

}  // namespace
}  // namespace colcast::flags
