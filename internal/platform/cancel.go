package platform

import (
	"context"

	"github.com/musterhq/muster/internal/command"
)

// Cancel implements command.Canceler. The vendor's word alone says whether the
// device has received the command: it is asked for, and may come later.
func (p *Platform) Cancel(ctx context.Context, c command.Command) error {
	_, err := ask(ctx, p, methodCancelOperation, upkeep, p.am.Enterprises.Devices.Operations.Cancel(c.Ref))
	if err != nil {
		return err
	}
	return p.resolve(ctx, c)
}
