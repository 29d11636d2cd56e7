// HTML with every text escaped: what is not a literal of this program goes through Text().
#ifndef COLCAST_SERVER_HTTP_PAGES_HTML_WRITER_H_
#define COLCAST_SERVER_HTTP_PAGES_HTML_WRITER_H_

#include <string>
#include <string_view>

namespace colcast::http {

class HtmlWriter {
 public:
  // Markup from this program's text alone. Only literals convert to it, so that a name from a model
  // or a request cannot get here by mistake.
  template <size_t size>
  HtmlWriter& Markup(const char (&literal)[size]) {
    html_.append(literal, size - 1);
    return *this;
  }
  // Shown as it is, and safe within a quoted attribute.
  HtmlWriter& Text(std::string_view text);

  // <td>text</td>, and one with numbers, flush right.
  HtmlWriter& Cell(std::string_view text);
  HtmlWriter& NumberCell(std::string_view text);

  const std::string& html() const { return html_; }

 private:
  std::string html_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_HTML_WRITER_H_
