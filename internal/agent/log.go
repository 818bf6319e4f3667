package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// LogFile is the name of the agent's log in the state directory. It goes with the
// enrollment.
const LogFile = "log"

// logPath is where a command's log is uploaded.
const logPath = "/log/"

// uploadLog sends what was logged lately to the service, for one command. The service
// keeps it once, also if the answer is lost and it is sent again.
func (a *Agent) uploadLog(ctx context.Context, commandID string) (string, error) {
	if a.options.Kept == nil {
		return "", fmt.Errorf("%w: this agent keeps no log", ErrUnsupported)
	}
	text, err := a.options.Kept.Text()
	if err != nil {
		return "", err
	}
	text = text[:min(len(text), protocol.MaxLog)]
	var answer struct{}
	_, err = a.link.exchange(ctx, http.MethodPost, logPath+url.PathEscape(commandID), text, &answer)
	if refused, ok := errors.AsType[*refusal](err); ok && (refused.Answer.Code == protocol.NotFound ||
		refused.Answer.Code == protocol.Malformed) {
		return "", fmt.Errorf("the service does not take the log: %s", refused.Answer.Code) // now or later
	}
	return "log uploaded", err
}

// contentType is that of a request's body.
func contentType(path string) string {
	if strings.HasPrefix(path, logPath) {
		return "text/plain; charset=utf-8"
	}
	return "application/json"
}
