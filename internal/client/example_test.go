package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/musterhq/muster/internal/client"
)

// An error is what the service answered, or a *client.Lost: then the request may have had
// its effect, and only one with an IdempotencyKey may be sent again. With any other error
// nothing was sent.
func ExampleClient_Do() {
	broken := false
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken {
			panic(http.ErrAbortHandler) // closes the connection
		}
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
	}))
	key := "mk_example"
	answer, err := client.New(service.URL, key).Do(context.Background(),
		client.Request{Method: http.MethodGet, Path: client.Base + "/assets"})
	fmt.Println(string(answer.Body), err)

	broken = true
	_, err = client.New(service.URL, key).Do(context.Background(), client.Request{Method: http.MethodGet, Path: client.Base + "/assets"})
	_, lost := errors.AsType[*client.Lost](err)
	fmt.Println("lost:", lost)

	service.Close()
	_, err = client.New(service.URL, key).Do(context.Background(), client.Request{Method: http.MethodGet, Path: client.Base + "/assets"})
	_, lost = errors.AsType[*client.Lost](err)
	fmt.Println("lost:", lost)
	// Output:
	// GET /api/v1/assets <nil>
	// lost: true
	// lost: false
}
