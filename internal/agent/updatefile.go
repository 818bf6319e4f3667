package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/musterhq/muster/internal/agent/download"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// fetch downloads, beside an agent that runs.
func (u *updates) fetch(ctx context.Context) {
	if u.fetching {
		return
	}
	u.fetching = true
	file := u.now.Want.File
	if !u.agent.gate.on {
		u.fetched <- u.download(ctx, file)
		u.settle()
		return
	}
	u.agent.working.Go(func() {
		err := u.download(ctx, file)
		u.fetched <- err
		if err == nil || errors.Is(err, download.ErrWrong) { // another failure waits for the next check-in, as a pause
			u.agent.Hint()
		}
	})
}

// download gets the file. Between attempts it waits, longer each time.
func (u *updates) download(ctx context.Context, file protocol.File) (err error) {
	path := u.agent.store.path(programFile)
	for attempt := range fetchTries {
		if attempt > 0 && (!u.agent.gate.on || !u.agent.wait(ctx, spread(attempt), nil)) {
			break
		}
		err = download.Fetch(ctx, path, file, u.source(file.SHA256), u.agent.options.Crash)
		if err == nil || errors.Is(err, download.ErrWrong) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// source asks the service for ranges of a file.
func (u *updates) source(sha256 string) download.Source {
	return func(ctx context.Context, from, to int64) (answer *http.Response, err error) {
		ctx, cancel := context.WithTimeout(ctx, exchangeTime)
		err = u.agent.link.corrected(func() (err error) {
			answer, _, err = u.agent.link.send(ctx, http.MethodGet, "/file/"+sha256, nil,
				http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", from, to)}})
			return err
		})
		if err != nil {
			cancel()
			return nil, err
		}
		answer.Body = canceling{answer.Body, cancel}
		return answer, nil
	}
}

// canceling frees a request's context when its answer is closed.
type canceling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c canceling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
