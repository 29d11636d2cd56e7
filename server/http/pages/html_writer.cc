#include "server/http/pages/html_writer.h"

namespace colcast::http {

HtmlWriter& HtmlWriter::Text(std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        html_ += "&amp;";
        break;
      case '<':
        html_ += "&lt;";
        break;
      case '>':
        html_ += "&gt;";
        break;
      case '"':
        html_ += "&quot;";
        break;
      case '\'':
        html_ += "&#39;";
        break;
      default:
        html_ += c;
    }
  }
  return *this;
}

HtmlWriter& HtmlWriter::Cell(std::string_view text) {
  return Markup("<td>").Text(text).Markup("</td>");
}

HtmlWriter& HtmlWriter::NumberCell(std::string_view text) {
  return Markup("<td class=\"number\">").Text(text).Markup("</td>");
}

}  // namespace colcast::http
