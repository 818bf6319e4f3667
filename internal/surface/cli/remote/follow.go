package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/client"
)

// followWait is how long the service holds a request for events, in seconds, and
// followPause how long the command waits when there is no service.
const (
	followWait  = "30"
	followPause = 5 * time.Second
)

// follow prints events as they come: with -o json each as one line. A service that cannot
// be reached is asked again, from where the reading was.
func (c *call) follow(env *Env, service *client.Client, r client.Request) error {
	r.Query.Set("wait", followWait)
	for {
		answer, err := service.Do(env.Context, r)
		if env.Context.Err() != nil {
			return nil
		}
		if pause, again := followAgain(err); again {
			if !env.wait(env.Context, pause) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		var page struct {
			Events []json.RawMessage `json:"events"`
			Next   string            `json:"next"`
		}
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			return fmt.Errorf("the answer of the service is not JSON: %w", err)
		}
		for _, event := range page.Events {
			if err := c.printEvent(env, event); err != nil {
				return err
			}
		}
		r.Query.Set("after", page.Next)
	}
}

// followAgain reports whether a failed reading goes on, and after which pause.
func followAgain(err error) (time.Duration, bool) {
	p, answered := errors.AsType[*client.Problem](err)
	switch {
	case err == nil:
		return 0, false
	case !answered:
		return followPause, true
	case p.Status == http.StatusTooManyRequests, p.Status >= http.StatusInternalServerError:
		return max(p.RetryAfter, followPause), true
	}
	return 0, false
}

func (c *call) printEvent(env *Env, event json.RawMessage) error {
	if c.Output == "json" {
		_, err := fmt.Fprintln(env.Out, string(event))
		return err
	}
	var e struct {
		ID   string         `json:"id"`
		Type string         `json:"type"`
		At   string         `json:"at"`
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return err
	}
	cells := []string{e.At, e.Type}
	for _, name := range []string{"assetId", "policyId", "proposalId", "status"} {
		if value, ok := e.Data[name].(string); ok {
			cells = append(cells, value)
		}
	}
	_, err := fmt.Fprintln(env.Out, plain(strings.Join(cells, "  ")))
	return err
}
