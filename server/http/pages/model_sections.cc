#include <cctype>
#include <map>
#include <string_view>

#include "server/http/pages/html_writer.h"
#include "server/http/pages/sections.h"

namespace colcast::http {
namespace {

using models::ModelSnapshot;
using models::VersionSnapshot;
using models::VersionState;
using Columns = google::protobuf::Map<std::string, tensorflow::TensorInfo>;

void WriteState(VersionState state, const Status& error, HtmlWriter* html) {
  switch (state) {
    case VersionState::kStart:
      html->Markup("<span class=\"badge waiting\">waiting</span>");
      return;
    case VersionState::kLoading:
      html->Markup("<span class=\"badge waiting\">loading</span>");
      return;
    case VersionState::kAvailable:
      html->Markup("<span class=\"badge good\">serving</span>");
      return;
    case VersionState::kUnloading:
      html->Markup("<span class=\"badge waiting\">unloading</span>");
      return;
    case VersionState::kEnd:
      if (error.ok()) {
        html->Markup("<span class=\"badge\">unloaded</span>");
      } else {
        html->Markup("<span class=\"badge bad\">failed</span>");
      }
  }
}

void WriteVersion(const ModelSnapshot& model, const VersionSnapshot& version, HtmlWriter* html) {
  html->Markup("<tr>").Cell(model.name).NumberCell(std::to_string(version.status.version));
  html->Markup("<td>");
  WriteState(version.status.state, version.status.error, html);
  html->Markup("</td><td>");
  for (const std::string& label : version.labels) {
    html->Markup("<span class=\"badge label\">").Text(label).Markup("</span> ");
  }
  html->Markup("</td><td class=\"path\">").Text(version.path);
  if (!version.status.error.ok()) {
    html->Markup("<p class=\"error\">").Text(version.status.error.message).Markup("</p>");
  }
  html->Markup("</td></tr>\n");
}

// "float" for DT_FLOAT.
std::string TypeText(tensorflow::DataType type) {
  std::string name = tensorflow::DataType_Name(type);
  if (name.rfind("DT_", 0) == 0) name.erase(0, 3);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// "[N, 3]"; a dimension that is not known, other than the rows, is "?".
std::string ShapeText(const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "any";
  std::string text = "[";
  for (int i = 0; i < shape.dim_size(); ++i) {
    if (i > 0) text += ", ";
    const int64_t size = shape.dim(i).size();
    text += size >= 0 ? std::to_string(size) : i == 0 ? "N" : "?";
  }
  return text + "]";
}

// How many rows of an input a request may have, in the expansion rule's words.
std::string_view RowsText(const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "1 or N";
  if (shape.dim_size() == 0) return "one value";
  if (shape.dim(0).size() < 0) return "1 or N";
  return shape.dim(0).size() == 1 ? "1: the user" : "as declared";
}

void WriteColumns(const Columns& columns, bool inputs, HtmlWriter* html) {
  std::map<std::string_view, const tensorflow::TensorInfo*> sorted;
  for (const auto& [name, info] : columns) sorted[name] = &info;
  html->Markup("<table><thead><tr><th>").Text(inputs ? "input" : "output");
  html->Markup("</th><th>type</th><th>shape</th>");
  if (inputs) html->Markup("<th>rows to send</th>");
  html->Markup("</tr></thead><tbody>\n");
  for (const auto& [name, info] : sorted) {
    html->Markup("<tr>").Cell(name).Cell(TypeText(info->dtype()));
    html->Cell(ShapeText(info->tensor_shape()));
    if (inputs) html->Cell(RowsText(info->tensor_shape()));
    html->Markup("</tr>\n");
  }
  html->Markup("</tbody></table>\n");
}

// "1 input", "2 inputs".
std::string Counted(int count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

// In which form its graph is served, where there are several.
void WriteGraph(const std::string& name, const engine::Model& model, HtmlWriter* html) {
  for (const engine::GraphChoice& choice : model.graphs()) {
    if (choice.signature != name) continue;
    html->Markup("<p class=\"faint\">Graph: ").Text(choice.why).Markup("</p>\n");
  }
}

void WriteSignature(const std::string& name, const tensorflow::SignatureDef& signature,
                    const VersionSnapshot& version, const ModelSnapshot& model, HtmlWriter* html) {
  int users = 0;
  for (const auto& [input, info] : signature.inputs()) {
    const tensorflow::TensorShapeProto& shape = info.tensor_shape();
    users += shape.dim_size() > 0 && shape.dim(0).size() == 1;
  }
  const std::string number = std::to_string(version.status.version);
  html->Markup("<details id=\"").Text(model.name + '/' + number + '/' + name);
  html->Markup("\"><summary><b>").Text(name).Markup("</b> <span class=\"faint\">");
  html->Text(model.name + " version " + number + ": ");
  html->Text(Counted(signature.inputs_size(), "input"));
  if (users > 0) html->Text(", " + std::to_string(users) + " of them the user's");
  html->Text(", " + Counted(signature.outputs_size(), "output"));
  html->Markup("</span></summary>\n");
  WriteGraph(name, version.servable->model(), html);
  html->Markup("<div class=\"columns\">\n");
  WriteColumns(signature.inputs(), /*inputs=*/true, html);
  WriteColumns(signature.outputs(), /*inputs=*/false, html);
  html->Markup("</div></details>\n");
}

}  // namespace

std::string ModelsSection(const std::vector<ModelSnapshot>& models) {
  HtmlWriter html;
  html.Markup(
      "<div class=\"wide\"><table><thead><tr><th>model</th><th class=\"number\">version</th>"
      "<th>state</th><th>labels</th><th>directory</th></tr></thead><tbody>\n");
  for (const ModelSnapshot& model : models) {
    for (const VersionSnapshot& version : model.versions) WriteVersion(model, version, &html);
    if (!model.versions.empty()) continue;
    html.Markup("<tr>").Cell(model.name);
    html.Markup("<td colspan=\"3\" class=\"faint\">no version found yet</td><td class=\"path\">");
    html.Text(model.base_path).Markup("</td></tr>\n");
  }
  html.Markup("</tbody></table></div>");
  return html.html();
}

std::string SignaturesSection(const std::vector<ModelSnapshot>& models) {
  HtmlWriter html;
  for (const ModelSnapshot& model : models) {
    for (const VersionSnapshot& version : model.versions) {
      if (version.servable == nullptr) continue;
      std::map<std::string, const tensorflow::SignatureDef*> sorted;
      for (const auto& [name, signature] : version.servable->signatures()) {
        // What restores and initializes variables is no one's to call.
        if (name.rfind("__saved_model", 0) != 0) sorted[name] = &signature;
      }
      for (const auto& [name, signature] : sorted) {
        WriteSignature(name, *signature, version, model, &html);
      }
    }
  }
  if (html.html().empty()) html.Markup("<p class=\"faint\">No version serves.</p>");
  return html.html();
}

}  // namespace colcast::http
