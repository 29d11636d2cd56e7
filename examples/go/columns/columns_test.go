package columns

import (
	"bufio"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestRequestsHaveTheBytesOfThePythonClient(t *testing.T) {
	file, err := os.Open(os.Getenv("COLCAST_VECTORS"))
	if err != nil {
		t.Fatal(err)
	}
	var request *Request
	name, compared := "", 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "request":
			name, request = words[1], New(words[2], words[3])
		case "bytes":
			written, err := request.Bytes()
			if got := hex.EncodeToString(written); err != nil || got != words[1] {
				t.Errorf("%s: got %s, %v, expected %s", name, got, err, words[1])
			}
			compared++
		default:
			add(t, request, words[0], words[1], shape(t, words[2]), words[3:])
		}
	}
	if compared == 0 {
		t.Error("no request was compared")
	}
}

func TestValuesThatDoNotFillTheirShapeAreNamed(t *testing.T) {
	request := New("m", "columnar")
	request.Int64("age", []int64{1, 2}, 3)
	if _, err := request.Bytes(); err == nil || !strings.Contains(err.Error(), `"age"`) {
		t.Errorf("got %v", err)
	}
}

func add(t *testing.T, request *Request, dtype, name string, shape []int, values []string) {
	switch dtype {
	case "int64":
		var numbers []int64
		for _, value := range values {
			number, err := strconv.ParseInt(value, 10, 64)
			check(t, err)
			numbers = append(numbers, number)
		}
		request.Int64(name, numbers, shape...)
	case "float32":
		var numbers []float32
		for _, value := range values {
			number, err := strconv.ParseFloat(value, 32)
			check(t, err)
			numbers = append(numbers, float32(number))
		}
		request.Float32(name, numbers, shape...)
	case "string":
		var texts []string
		for _, value := range values {
			text, err := hex.DecodeString(strings.Trim(value, "-"))
			check(t, err)
			texts = append(texts, string(text))
		}
		request.Strings(name, texts, shape...)
	default:
		t.Fatalf("dtype %q", dtype)
	}
}

func shape(t *testing.T, text string) []int {
	var sizes []int
	for _, part := range strings.Split(text, ",") {
		size, err := strconv.Atoi(part)
		check(t, err)
		sizes = append(sizes, size)
	}
	return sizes
}

func check(t *testing.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
