package servertest

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
)

// Stream opens a live stream of the portal and returns its data lines. It ends
// with the test.
func (b *Browser) Stream(tb testing.TB, address string) <-chan string {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	need(tb, err)
	response, err := b.browser.HTTP.Do(request)
	need(tb, err)
	if response.StatusCode != http.StatusOK {
		tb.Fatalf("%s: %d", address, response.StatusCode)
	}
	lines, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(lines)
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			if strings.HasPrefix(scanner.Text(), "data:") {
				select {
				case lines <- scanner.Text():
				case <-ctx.Done():
				}
			}
		}
	}()
	tb.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
		<-ended
	})
	return lines
}
