#include "server/wire/schema.h"

#include <string_view>

#include "server/base/text.h"

namespace colcast {
namespace {

using Kind = FieldKind;

template <size_t size>
constexpr MessageSchema Schema(const FieldSchema (&fields)[size]) {
  return {fields, size};
}

constexpr FieldSchema kInt64ValueFields[] = {{1, Kind::kPlain, "value"}};
constexpr MessageSchema kInt64Value = Schema(kInt64ValueFields);

constexpr FieldSchema kModelSpecFields[] = {
    {1, Kind::kString, "name"},
    {2, Kind::kMessage, "version", &kInt64Value},
    {3, Kind::kString, "signature_name"},
    {4, Kind::kString, "version_label"},
};
constexpr MessageSchema kModelSpec = Schema(kModelSpecFields);

constexpr FieldSchema kDimFields[] = {{1, Kind::kPlain, "size"}, {2, Kind::kString, "name"}};
constexpr MessageSchema kDim = Schema(kDimFields);

constexpr FieldSchema kTensorShapeFields[] = {
    {2, Kind::kMessage, "dim", &kDim},
    {3, Kind::kPlain, "unknown_rank"},
};
constexpr MessageSchema kTensorShape = Schema(kTensorShapeFields);

constexpr FieldSchema kDtypeAndShapeFields[] = {
    {1, Kind::kPlain, "dtype"},
    {2, Kind::kMessage, "shape", &kTensorShape},
};
constexpr MessageSchema kDtypeAndShape = Schema(kDtypeAndShapeFields);

constexpr FieldSchema kResourceHandleFields[] = {
    {1, Kind::kString, "device"},
    {2, Kind::kString, "container"},
    {3, Kind::kString, "name"},
    {4, Kind::kPlain, "hash_code"},
    {5, Kind::kString, "maybe_type_name"},
    {6, Kind::kMessage, "dtypes_and_shapes", &kDtypeAndShape},
};

constexpr FieldSchema kVariantTensorDataFields[] = {
    {1, Kind::kString, "type_name"},
    {2, Kind::kPlain, "metadata"},
    {3, Kind::kMessage, "tensors", &kTensorProto},
};

constexpr FieldSchema kTensorFields[] = {
    {1, Kind::kPlain, "dtype"},
    {2, Kind::kMessage, "tensor_shape", &kTensorShape},
    {3, Kind::kPlain, "version_number"},
    {4, Kind::kPlain, "tensor_content"},
    {5, Kind::kRepeatedFixed32, "float_val"},
    {6, Kind::kRepeatedFixed64, "double_val"},
    {7, Kind::kRepeatedVarint, "int_val"},
    {8, Kind::kPlain, "string_val"},
    {9, Kind::kRepeatedFixed32, "scomplex_val"},
    {10, Kind::kRepeatedVarint, "int64_val"},
    {11, Kind::kRepeatedVarint, "bool_val"},
    {12, Kind::kRepeatedFixed64, "dcomplex_val"},
    {13, Kind::kRepeatedVarint, "half_val"},
    {14, Kind::kMessage, "resource_handle_val", &kResourceHandleProto},
    {15, Kind::kMessage, "variant_val", &kVariantTensorDataProto},
    {16, Kind::kRepeatedVarint, "uint32_val"},
    {17, Kind::kRepeatedVarint, "uint64_val"},
    {18, Kind::kPlain, "float8_val"},
};

constexpr FieldSchema kTensorEntryFields[] = {
    {1, Kind::kString, "key"},
    {2, Kind::kMessage, "value", &kTensorProto},
};
constexpr MessageSchema kTensorEntry = Schema(kTensorEntryFields);

constexpr FieldSchema kSplitDimensionsEntryFields[] = {
    {1, Kind::kString, "key"},
    {2, Kind::kPlain, "value"},
};
constexpr MessageSchema kSplitDimensionsEntry = Schema(kSplitDimensionsEntryFields);

constexpr FieldSchema kPredictStreamedOptionsFields[] = {
    {1, Kind::kPlain, "request_state"},
    {2, Kind::kMapEntry, "split_dimensions", &kSplitDimensionsEntry},
    {3, Kind::kPlain, "return_single_response"},
};

constexpr FieldSchema kHandshakeFields[] = {{1, Kind::kPlain, "estimated_payload_bytes"}};
constexpr MessageSchema kHandshake = Schema(kHandshakeFields);

constexpr FieldSchema kRequestOptionsFields[] = {
    {1, Kind::kPlain, "client_id"},
    {2, Kind::kPlain, "deterministic_mode"},
    {3, Kind::kPlain, "return_additional_arrays_from_prefill"},
    {4, Kind::kRepeatedVarint, "return_stoptokens"},
    {6, Kind::kPlain, "max_cache_length"},
    {9, Kind::kPlain, "return_all_stoptokens"},
    {13, Kind::kMessage, "handshake", &kHandshake},
};

constexpr FieldSchema kPredictRequestFields[] = {
    {1, Kind::kMessage, "model_spec", &kModelSpec},
    {2, Kind::kMapEntry, "inputs", &kTensorEntry},
    {3, Kind::kString, "output_filter"},
    {5, Kind::kMessage, "predict_streamed_options", &kPredictStreamedOptions},
    {6, Kind::kPlain, "client_id"},
    {7, Kind::kMessage, "request_options", &kRequestOptions},
};

constexpr FieldSchema kPredictResponseFields[] = {
    {1, Kind::kMapEntry, "outputs", &kTensorEntry},
    {2, Kind::kMessage, "model_spec", &kModelSpec},
};

constexpr FieldSchema kBytesListFields[] = {{1, Kind::kPlain, "value"}};
constexpr MessageSchema kBytesList = Schema(kBytesListFields);
constexpr FieldSchema kFloatListFields[] = {{1, Kind::kRepeatedFixed32, "value"}};
constexpr MessageSchema kFloatList = Schema(kFloatListFields);
constexpr FieldSchema kInt64ListFields[] = {{1, Kind::kRepeatedVarint, "value"}};
constexpr MessageSchema kInt64List = Schema(kInt64ListFields);

constexpr FieldSchema kFeatureFields[] = {
    {1, Kind::kMessage, "bytes_list", &kBytesList},
    {2, Kind::kMessage, "float_list", &kFloatList},
    {3, Kind::kMessage, "int64_list", &kInt64List},
};
constexpr MessageSchema kFeature = Schema(kFeatureFields);

constexpr FieldSchema kFeatureEntryFields[] = {
    {1, Kind::kString, "key"},
    {2, Kind::kMessage, "value", &kFeature},
};
constexpr MessageSchema kFeatureEntry = Schema(kFeatureEntryFields);

constexpr FieldSchema kFeaturesFields[] = {{1, Kind::kMapEntry, "feature", &kFeatureEntry}};
constexpr MessageSchema kFeatures = Schema(kFeaturesFields);
constexpr FieldSchema kExampleFields[] = {{1, Kind::kMessage, "features", &kFeatures}};
constexpr MessageSchema kExample = Schema(kExampleFields);

constexpr FieldSchema kExampleListFields[] = {{1, Kind::kPlain, "examples"}};
constexpr MessageSchema kExampleList = Schema(kExampleListFields);

constexpr FieldSchema kExampleListWithContextFields[] = {
    {1, Kind::kPlain, "examples"},
    {2, Kind::kMessage, "context", &kExample},
};
constexpr MessageSchema kExampleListWithContext = Schema(kExampleListWithContextFields);

constexpr FieldSchema kExampleInputFields[] = {
    {1, Kind::kMessage, "example_list", &kExampleList},
    {2, Kind::kMessage, "example_list_with_context", &kExampleListWithContext},
};
constexpr MessageSchema kExampleInput = Schema(kExampleInputFields);

constexpr FieldSchema kExampleRequestFields[] = {
    {1, Kind::kMessage, "model_spec", &kModelSpec},
    {2, Kind::kMessage, "input", &kExampleInput},
};

constexpr FieldSchema kInferenceTaskFields[] = {
    {1, Kind::kMessage, "model_spec", &kModelSpec},
    {2, Kind::kString, "method_name"},
};
constexpr MessageSchema kInferenceTask = Schema(kInferenceTaskFields);

constexpr FieldSchema kMultiInferenceRequestFields[] = {
    {1, Kind::kMessage, "tasks", &kInferenceTask},
    {2, Kind::kMessage, "input", &kExampleInput},
};

constexpr FieldSchema kInferParameterFields[] = {
    {1, Kind::kPlain, "bool_param"},    {2, Kind::kPlain, "int64_param"},
    {3, Kind::kString, "string_param"}, {4, Kind::kPlain, "double_param"},
    {5, Kind::kPlain, "uint64_param"},
};
constexpr MessageSchema kInferParameter = Schema(kInferParameterFields);

constexpr FieldSchema kInferParameterEntryFields[] = {
    {1, Kind::kString, "key"},
    {2, Kind::kMessage, "value", &kInferParameter},
};
constexpr MessageSchema kInferParameterEntry = Schema(kInferParameterEntryFields);

constexpr FieldSchema kInferTensorContentsFields[] = {
    {1, Kind::kRepeatedVarint, "bool_contents"},   {2, Kind::kRepeatedVarint, "int_contents"},
    {3, Kind::kRepeatedVarint, "int64_contents"},  {4, Kind::kRepeatedVarint, "uint_contents"},
    {5, Kind::kRepeatedVarint, "uint64_contents"}, {6, Kind::kRepeatedFixed32, "fp32_contents"},
    {7, Kind::kRepeatedFixed64, "fp64_contents"},  {8, Kind::kPlain, "bytes_contents"},
};

constexpr FieldSchema kInferInputFields[] = {
    {1, Kind::kString, "name"},
    {2, Kind::kString, "datatype"},
    {3, Kind::kRepeatedVarint, "shape"},
    {4, Kind::kMapEntry, "parameters", &kInferParameterEntry},
    {5, Kind::kMessage, "contents", &kInferTensorContents},
};
constexpr MessageSchema kInferInput = Schema(kInferInputFields);

constexpr FieldSchema kInferOutputFields[] = {
    {1, Kind::kString, "name"},
    {2, Kind::kMapEntry, "parameters", &kInferParameterEntry},
};
constexpr MessageSchema kInferOutput = Schema(kInferOutputFields);

constexpr FieldSchema kInferRequestFields[] = {
    {1, Kind::kString, "model_name"},
    {2, Kind::kString, "model_version"},
    {3, Kind::kString, "id"},
    {4, Kind::kMapEntry, "parameters", &kInferParameterEntry},
    {5, Kind::kMessage, "inputs", &kInferInput},
    {6, Kind::kMessage, "outputs", &kInferOutput},
    {7, Kind::kPlain, "raw_input_contents"},
};

}  // namespace

constexpr MessageSchema kInferRequest = Schema(kInferRequestFields);
constexpr MessageSchema kInferTensorContents = Schema(kInferTensorContentsFields);
constexpr MessageSchema kExampleRequest = Schema(kExampleRequestFields);
constexpr MessageSchema kMultiInferenceRequest = Schema(kMultiInferenceRequestFields);
constexpr MessageSchema kPredictRequest = Schema(kPredictRequestFields);
constexpr MessageSchema kPredictResponse = Schema(kPredictResponseFields);
constexpr MessageSchema kPredictStreamedOptions = Schema(kPredictStreamedOptionsFields);
constexpr MessageSchema kRequestOptions = Schema(kRequestOptionsFields);
constexpr MessageSchema kTensorProto = Schema(kTensorFields);
constexpr MessageSchema kResourceHandleProto = Schema(kResourceHandleFields);
constexpr MessageSchema kVariantTensorDataProto = Schema(kVariantTensorDataFields);

}  // namespace colcast
