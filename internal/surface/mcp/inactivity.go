package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tellInactivity adds to the tools that read assets how long a device of the
// company may be silent before it is INACTIVE: a model asked for devices silent
// for a month has no other way to know whether that status answers it.
func (c Config) tellInactivity(ctx context.Context, list *sdk.ListToolsResult, companyID string) error {
	if c.Companies == nil {
		return nil
	}
	sentence := ""
	for i, tool := range list.Tools {
		if !strings.HasSuffix(tool.Name, "_assets") && tool.Name != "get_asset" {
			continue
		}
		if sentence == "" {
			owner, err := c.Companies.CompanyByID(ctx, companyID)
			if err != nil {
				return fmt.Errorf("cannot read the company: %w", err)
			}
			sentence = " A device is INACTIVE after " + inWords(owner.InactiveAfter) + " of silence."
		}
		told := *tool // the registry's own belongs to all callers
		told.Description += sentence
		list.Tools[i] = &told
	}
	return nil
}

// inWords is a time in its largest whole unit.
func inWords(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.length; n > 0 && d%unit.length == 0 {
			if n == 1 {
				return "1 " + unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return d.String()
}
