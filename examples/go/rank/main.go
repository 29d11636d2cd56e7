// Ranks two movies for one user, then the same movies for two users: rank HOST:PORT MODEL.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"colcast/columns"
	"colcast/serving" // generated: build.sh

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

const method = "/tensorflow.serving.PredictionService/Predict"

// rawRequests is a codec that sends encoded requests unchanged and decodes answers.
type rawRequests struct{}

func (rawRequests) Marshal(request interface{}) ([]byte, error) { return request.([]byte), nil }

func (rawRequests) Unmarshal(data []byte, answer interface{}) error {
	return proto.Unmarshal(data, answer.(proto.Message))
}

func (rawRequests) Name() string { return "proto" }

func (rawRequests) String() string { return "proto" }

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: rank HOST:PORT MODEL")
	}
	connection, err := grpc.Dial(os.Args[1], grpc.WithInsecure())
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	for _, users := range [][]int64{{31}, {31, 54}} {
		scores, err := rank(connection, os.Args[2], users)
		if err != nil {
			log.Fatal(err)
		}
		for _, score := range scores {
			fmt.Println(score)
		}
	}
}

// rank scores two movies for users of these ages; with two users, movie i is for user i.
func rank(connection *grpc.ClientConn, model string, ages []int64) ([]float32, error) {
	users := len(ages)
	request := columns.New(model, "columnar")
	request.Int64("age", ages, users)
	request.Strings("city", []string{"Łódź", "Oslo"}[:users], users)
	request.Int64("history", []int64{4, 8, 15, 16}[:2*users], users, 2)
	request.Int64("history/length", []int64{2, 1}[:users], users)
	request.Int64("movie", []int64{7, 9}, 2)
	request.Strings("genres", []string{"War", "", "Noir", "War"}, 2, 2)
	request.Int64("genres/length", []int64{1, 2}, 2)
	request.Float32("vector", []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if users > 1 {
		request.RowTo("user", []int64{0, 1})
	}
	message, err := request.Bytes()
	if err != nil {
		return nil, err
	}
	deadline, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer := &serving.PredictResponse{}
	err = connection.Invoke(deadline, method, message, answer, grpc.ForceCodec(rawRequests{}))
	if err != nil {
		return nil, err
	}
	return floats(answer.Outputs["scores"]), nil
}

// floats reads floats in either of the two forms that servers send.
func floats(tensor *serving.TensorProto) []float32 {
	if len(tensor.FloatVal) > 0 {
		return tensor.FloatVal
	}
	values := make([]float32, len(tensor.TensorContent)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(tensor.TensorContent[4*i:]))
	}
	return values
}
