package emulator

import (
	"slices"
	"strconv"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
)

// operation is a command on its way to a device.
type operation struct {
	ID       string      `json:"id"` // the time of its creation, in Unix milliseconds
	Expires  time.Time   `json:"expires"`
	Command  *am.Command `json:"command"`            // without a password
	Password string      `json:"password,omitempty"` // a passwordKind
	Done     bool        `json:"done,omitempty"`
	Error    *am.Status  `json:"error,omitempty"`

	secret string // the new password, only for [Quirks.EchoNewPassword]
}

// operationsKept is how many operations of a device are remembered; the vendor
// drops old ones as well.
const operationsKept = 100

// commandType is the type of an operation's metadata.
const commandType = "type.googleapis.com/google.android.devicemanagement.v1.Command"

// newOperation queues a command for a device.
func (e *Emulator) newOperation(d *simulated, command *am.Command, lifetime time.Duration) *operation {
	created := e.now().UTC().Truncate(time.Millisecond)
	if last := len(d.Operations); last > 0 {
		if ms, err := strconv.ParseInt(d.Operations[last-1].ID, 10, 64); err == nil && ms >= created.UnixMilli() {
			created = time.UnixMilli(ms + 1).UTC()
		}
	}
	command.CreateTime = timestamp(created)
	command.UserName = d.owner.name() + "/users/" + d.UserID
	op := &operation{ID: strconv.FormatInt(created.UnixMilli(), 10), Expires: created.Add(lifetime), Command: command}
	if command.Type == "RESET_PASSWORD" {
		op.Password = passwordKind(command.NewPassword)
	}
	if e.settings.Quirks.EchoNewPassword {
		op.secret = command.NewPassword
	}
	command.NewPassword = ""
	d.Operations = append(d.Operations, op)
	d.dropOldOperations()
	e.scheduleOperation(d, op)
	e.touch()
	return op
}

func (d *simulated) dropOldOperations() {
	for extra := len(d.Operations) - operationsKept; extra > 0; extra-- {
		at := slices.IndexFunc(d.Operations, func(op *operation) bool { return op.Done })
		if at < 0 {
			return
		}
		d.Operations = slices.Delete(d.Operations, at, at+1)
	}
}

// scheduleOperation lets the device carry out a command after its latency, and
// the command expire.
func (e *Emulator) scheduleOperation(d *simulated, op *operation) {
	e.after(d.latency(), func() { e.carryOut(d, op, &outbox{}) })
	e.at(op.Expires, func() { e.expire(d, op) })
}

// current reports whether an operation still waits for its device.
func (e *Emulator) current(d *simulated, op *operation) bool {
	return e.world.byDevice[d.ID] == d && !d.Deleted && !op.Done
}

func (e *Emulator) expire(d *simulated, op *operation) {
	if !e.current(d, op) {
		return
	}
	op.Done = true
	if e.settings.Quirks.ExpiredWithoutError {
		op.Command.ErrorCode = "UNKNOWN"
	} else {
		op.Error = &am.Status{Code: 4, Message: "The command expired before the device could execute it."}
	}
	e.touch()
	if !e.settings.Quirks.SilentExpiry {
		e.notifyCommand(d, op, &outbox{})
	}
}

func (e *Emulator) notifyCommand(d *simulated, op *operation, out *outbox) {
	e.notify(d.owner, "COMMAND", d.operationResource(op), out)
}

// operationResource is an operation as the API answers it. It is a copy.
func (d *simulated) operationResource(op *operation) *am.Operation {
	tree, err := toTree(op.Command)
	if err != nil {
		panic(err) // what was read from JSON always marshals
	}
	tree["@type"] = commandType
	if op.secret != "" {
		tree["newPassword"] = op.secret
	}
	return &am.Operation{Name: d.name() + "/operations/" + op.ID, Done: op.Done, Error: op.Error, Metadata: marshaled(tree)}
}

// operation finds the operation that a call names.
func (d *simulated) operation(c *call) (*operation, error) {
	id := c.segment(5)
	at := slices.IndexFunc(d.Operations, func(op *operation) bool { return op.ID == id })
	if at < 0 {
		return nil, notFound()
	}
	return d.Operations[at], nil
}

func getOperation(_ *Emulator, c *call, _ *enterprise, d *simulated) (any, error) {
	op, err := d.operation(c)
	if err != nil {
		return nil, err
	}
	return d.operationResource(op), nil
}

func listOperations(_ *Emulator, c *call, _ *enterprise, d *simulated) (any, error) {
	if c.query.Get("filter") != "" {
		return nil, fail(501, "The emulator does not have filters on operations.")
	}
	part, next, err := page(c, d.Operations, func(op *operation) string { return op.ID }, d.operationResource, 100, 100)
	return &am.ListOperationsResponse{Operations: part, NextPageToken: next}, err
}

// cancelOperation cancels a command that its device did not carry out yet. One
// that is done stays as it is, without an error: the vendor promises only an
// effort.
func cancelOperation(e *Emulator, c *call, _ *enterprise, d *simulated) (any, error) {
	op, err := d.operation(c)
	if err != nil || op.Done {
		return empty{}, err
	}
	op.Done = true
	op.Error = &am.Status{Code: 1, Message: "The operation was cancelled."}
	e.touch()
	if !e.settings.Quirks.SilentCancel {
		e.notifyCommand(d, op, &outbox{})
	}
	return empty{}, nil
}
