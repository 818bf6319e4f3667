package rest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// sink is a response writer that keeps nothing.
type sink struct{ header http.Header }

func (s sink) Header() http.Header         { return s.header }
func (s sink) Write(b []byte) (int, error) { return len(b), nil }
func (s sink) WriteHeader(int)             {}

// BenchmarkPipeline is a whole command: route, key, budget, rights, decoding,
// rules, handler, answer. BenchmarkEmpty is what the test itself costs.
func BenchmarkPipeline(b *testing.B) {
	s := newService(b)
	benchmark(b, s.ServeHTTP)
}

func BenchmarkEmpty(b *testing.B) {
	benchmark(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(`{"id":"a1"}`))
	})
}

func benchmark(b *testing.B, serve http.HandlerFunc) {
	target, err := url.Parse(launchPath)
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(launchBody)
	b.ReportAllocs()
	for b.Loop() {
		r := &http.Request{Method: "POST", URL: target, Body: io.NopCloser(bytes.NewReader(body)),
			Header: http.Header{"X-Api-Key": {"good"}, "Content-Type": {"application/json"}}}
		serve(sink{http.Header{}}, r)
	}
}

// BenchmarkRead is a whole read with a query and a validator.
func BenchmarkRead(b *testing.B) {
	s := newFuzzed(b)
	target, err := url.Parse("/api/v1/assets/count?status=ACTIVE&page=2")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := &http.Request{Method: "GET", URL: target, Body: http.NoBody, Header: http.Header{"X-Api-Key": {"good"}}}
		s.ServeHTTP(sink{http.Header{}}, r)
	}
}
