package activity

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/validate"
)

// Format is a form of export.
type Format string

// The formats.
const (
	CSV    Format = "csv"
	NDJSON Format = "ndjson"
)

// Export writes every entry of the filter, newest first, as it reads them:
// memory stays at one page.
func Export(ctx context.Context, store Store, f Filter, format Format, to io.Writer) error {
	out := bufio.NewWriter(to)
	write := writerOf(format, out)
	for after := (Cursor{}); ; {
		page, err := store.Activity(ctx, f, after, MaxPage)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := write(e); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil || len(page) < MaxPage {
			return err
		}
		after = Of(page[len(page)-1])
	}
}

func writerOf(format Format, out *bufio.Writer) func(Entry) error {
	if format == NDJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return func(e Entry) error { return encoder.Encode(e.line()) }
	}
	_, _ = out.WriteString("at,actor kind,actor,key prefix,action,target kind,target,target id,outcome,changes,reference,request id," +
		"address,client,reason,ticket\n") // out keeps the error
	table := csv.NewWriter(out)
	return func(e Entry) error {
		_ = table.Write(e.cells())
		table.Flush() // keeps the first error of writing
		return table.Error()
	}
}

// Lines returns the entries in the form of the NDJSON export.
func Lines(entries []Entry) []Entry {
	return slice.Map(entries, Entry.line)
}

// line is the entry as an export shows it.
func (e Entry) line() Entry {
	e.At = e.At.UTC()
	if e.Changes == nil {
		e.Changes = []Change{}
	}
	return e
}

func (e Entry) cells() []string {
	changes := slice.Map(e.Changes, func(c Change) string { return c.Field + ": " + c.Before + " -> " + c.After })
	cells := []string{e.At.UTC().Format(time.RFC3339Nano), string(e.Actor.Kind), e.Actor.Name, e.Actor.Prefix, string(e.Action),
		string(e.Target.Kind), e.Target.Name, e.Target.ID, string(e.Outcome), strings.Join(changes, "; "), e.Reference,
		e.RequestID, e.Address, e.Client, e.Note.Reason, e.Note.Ticket}
	for i, cell := range cells {
		cells[i] = validate.Cell(cell)
	}
	return cells
}
