package servertest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"
)

// Hold sends a request up to its body, which the service has begun to read when Hold
// returns: the caller was let in, and nothing was decided. What it returns sends the body
// and returns the answer.
func Hold(tb testing.TB, client *http.Client, request *http.Request, body string) (finish func() Answer) {
	tb.Helper()
	reading, sent, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	trace := &httptrace.ClientTrace{Got100Continue: func() { close(reading) }}
	request = request.WithContext(httptrace.WithClientTrace(context.WithoutCancel(request.Context()), trace))
	request.Header.Set("Expect", "100-continue") // it is answered when the body is first read
	request.ContentLength = int64(len(body))
	request.Body = io.NopCloser(gated{sent, strings.NewReader(body)})
	alone := *client
	alone.Transport = &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}
	var answer Answer
	var failed error
	go func() {
		defer close(answered)
		response, err := alone.Do(request)
		if failed = err; err != nil {
			return
		}
		defer response.Body.Close()
		answer.Status, answer.Header = response.StatusCode, response.Header
		answer.Body, failed = io.ReadAll(response.Body)
	}()
	select {
	case <-reading:
	case <-answered: // refused before its body was read
	}
	return func() Answer {
		tb.Helper()
		close(sent)
		<-answered
		if failed != nil {
			tb.Fatalf("%s %s: %v", request.Method, request.URL.Path, failed)
		}
		return answer
	}
}

// gated is a body that waits.
type gated struct {
	open <-chan struct{}
	io.Reader
}

func (g gated) Read(p []byte) (int, error) {
	<-g.open
	return g.Reader.Read(p)
}

// Hold sends a form up to its body, as the function Hold does.
func (b *Browser) Hold(address string, form string) (finish func() Answer) {
	b.env.TB.Helper()
	return b.HoldUpload(address, "application/x-www-form-urlencoded", form)
}

// HoldUpload is Hold for another form than the usual one.
func (b *Browser) HoldUpload(address, contentType, form string) (finish func() Answer) {
	b.env.TB.Helper()
	request, err := http.NewRequestWithContext(b.env.TB.Context(), http.MethodPost, address, nil)
	need(b.env.TB, err)
	request.Header.Set("X-Forwarded-For", b.address)
	request.Header.Set("Content-Type", contentType)
	return Hold(b.env.TB, b.browser, request, form)
}
