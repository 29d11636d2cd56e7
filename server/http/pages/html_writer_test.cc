#include "server/http/pages/html_writer.h"

#include <gtest/gtest.h>

namespace colcast::http {
namespace {

TEST(HtmlWriterTest, TextIsEscapedAndMarkupIsNot) {
  HtmlWriter writer;
  writer.Markup("<p title=\"").Text("a\"'b").Markup("\">").Text("<script>&").Markup("</p>");
  EXPECT_EQ(writer.html(), "<p title=\"a&quot;&#39;b\">&lt;script&gt;&amp;</p>");
}

TEST(HtmlWriterTest, CellsAreEscapedToo) {
  HtmlWriter writer;
  writer.Cell("<b>").NumberCell("1 < 2");
  EXPECT_EQ(writer.html(), "<td>&lt;b&gt;</td><td class=\"number\">1 &lt; 2</td>");
}

}  // namespace
}  // namespace colcast::http
