package platform

import (
	"context"

	"github.com/musterhq/muster/internal/command"
)

// Cancel implements command.Canceler. The vendor's word alone says whether the
// device has received the command: it is asked for, and may come later.
func (p *Platform) Cancel(ctx context.Context, c command.Command) error {
	err := p.call(ctx, methodCancelOperation, upkeep, func(ctx context.Context) error {
		_, err := p.am.Enterprises.Devices.Operations.Cancel(c.Ref).Context(ctx).Do()
		return err
	})
	if err != nil {
		return err
	}
	return p.resolve(ctx, c)
}
