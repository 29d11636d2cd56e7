#include "server/engine/record/records_by_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::engine {
namespace {

using testing::ElementsAre;
using testing::Pair;

RowRecord Rows(bool independent) {
  RowRecord record;
  record.recorded = true;
  record.independent = independent;
  return record;
}

// Of serving_default an independent columnar was made, of other one that is not.
class RecordsByNameTest : public testing::Test {
 protected:
  RecordsByNameTest() {
    for (const char* name : {"serving_default", "other", "columnar", "columnar_other"}) {
      (*signatures_[name].mutable_outputs())["score"].set_name(name);
    }
    records_.resize(2);
    records_[0].columnar = "columnar";
    records_[0].source = "serving_default";
    records_[0].rows["columnar"] = Rows(true);
    records_[1].columnar = "columnar_other";
    records_[1].source = "other";
    records_[1].rows["columnar_other"] = Rows(false);
  }

  // As `colcast export --make-default`.
  void MakeDefault(const std::string& name) {
    signatures_["serving_examples"] = signatures_["serving_default"];
    signatures_["serving_default"] = signatures_[name];
  }

  std::map<std::string, bool> Independent() const {
    std::map<std::string, bool> independent;
    for (const auto& [name, record] : RecordsByName(records_, signatures_)) {
      independent[name] = record.independent;
    }
    return independent;
  }

  SignatureMap signatures_;
  std::vector<RecordedSignatures> records_;
};

TEST_F(RecordsByNameTest, ASourceHasTheRecordOfWhatWasMadeOfIt) {
  EXPECT_THAT(Independent(), ElementsAre(Pair("columnar", true), Pair("columnar_other", false),
                                         Pair("other", false), Pair("serving_default", true)));
}

TEST_F(RecordsByNameTest, ASignatureOfTheModelThatOnlyHasTheNameOfAFormerDefaultHasNone) {
  signatures_["serving_examples"] = signatures_["other"];
  EXPECT_EQ(Independent().count("serving_examples"), 0);
}

TEST_F(RecordsByNameTest, ADefaultHasTheRecordOfTheNewSignatureThatItIsACopyOf) {
  MakeDefault("columnar_other");
  EXPECT_THAT(Independent(), ElementsAre(Pair("columnar", true), Pair("columnar_other", false),
                                         Pair("other", false), Pair("serving_default", false),
                                         Pair("serving_examples", true)));
}

TEST_F(RecordsByNameTest, ListsInExamplesHaveNoKnownLengths) {
  records_[0].rows["columnar"].own_length = {"f"};
  EXPECT_TRUE(Independent()["columnar"]);
  EXPECT_FALSE(Independent()["serving_default"]);
}

}  // namespace
}  // namespace colcast::engine
