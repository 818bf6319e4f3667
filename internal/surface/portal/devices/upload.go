package devices

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/wait"
)

// Limits of an upload.
const (
	MaxUpload     = asset.MaxImportBytes + 1<<20 // bytes, with the other fields of the form
	uploadPause   = 20 * time.Second             // between two pieces
	uploadTime    = 5 * time.Minute
	importTime    = 10 * time.Minute // until the answer is sent
	maxUploadPart = 4 << 10          // bytes of a field
	maxParts      = 300
	importWait    = 10 * time.Second // for the file before
	importPoll    = 20 * time.Millisecond
)

// upload is a posted file and what it is to be.
type upload struct {
	values  url.Values
	columns []fileColumn
	lines   []asset.Line
	wrong   []asset.LineError
	err     error // about the whole file
}

// receive reads the form of an import, one form at a time. The file is read as it arrives;
// it is not kept.
func (s *Section) receive(v *frame.Visit) any {
	up := &upload{values: url.Values{}}
	if v.Request().ContentLength > MaxUpload {
		up.err = asset.ErrLargeFile
		return up
	}
	if !s.beginImport(v.Context()) {
		up.err = fault.New(fault.Unavailable, "another file is being imported: try again in a minute")
		return up
	}
	control := http.NewResponseController(v.Writer())
	_ = control.SetWriteDeadline(v.Clock().Add(importTime))
	body := http.MaxBytesReader(v.Writer(), v.Request().Body, MaxUpload)
	v.Request().Body = &paced{ReadCloser: body, pause: func() {
		_ = control.SetReadDeadline(slices.MinFunc([]time.Time{v.Clock().Add(uploadPause), v.Now.Add(uploadTime)}, time.Time.Compare))
	}}
	parts, err := v.Request().MultipartReader()
	for n := 0; err == nil && n < maxParts && up.err == nil; n++ {
		var part *multipart.Part
		if part, err = parts.NextPart(); err == nil {
			err = up.part(part)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		up.err = brokenOff(err)
	}
	_ = control.SetReadDeadline(time.Time{}) // the body is read
	return up
}

// beginImport waits until no other file is imported, and keeps others waiting until the
// request has ended, which is a moment after its sender has the answer.
func (s *Section) beginImport(ctx context.Context) bool {
	soon, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	for !s.importing.TryLock() {
		if !wait.For(soon, importPoll) {
			return false
		}
	}
	context.AfterFunc(ctx, s.importing.Unlock)
	return true
}

// brokenOff is the error of a form that cannot be read to its end.
func brokenOff(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return asset.ErrLargeFile
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Invalid("the file did not arrive whole: send it again").Because(err)
}

// paced is a body whose sender may take some time for each piece of it.
type paced struct {
	io.ReadCloser
	pause func()
}

func (p *paced) Read(b []byte) (int, error) {
	p.pause()
	return p.ReadCloser.Read(b)
}

// part reads a part of the form: the file, or another field. What the file's columns are
// comes before the file.
func (u *upload) part(part *multipart.Part) error {
	if part.FormName() != "file" {
		text, err := io.ReadAll(io.LimitReader(part, maxUploadPart))
		u.values.Add(part.FormName(), string(text))
		return err
	}
	file, err := asset.OpenCSV(part)
	if err != nil {
		return err
	}
	targets := u.targets(file.Columns)
	u.lines, u.wrong, u.err = file.Lines(targets)
	for i, name := range file.Columns {
		c := fileColumn{Name: name, Target: targets[i]}
		if len(file.Example) > i {
			c.Example = file.Example[i]
		}
		u.columns = append(u.columns, c)
	}
	if _, ok := errors.AsType[*fault.Error](u.err); !ok && u.err != nil {
		return u.err
	}
	return nil
}

// targets are what the columns of the file are: as the person chose it for these columns,
// else by their names. What several columns seem to be is left to the first of them, and what
// devices report is left out of an export.
func (u *upload) targets(columns []string) []string {
	targets := make([]string, len(columns))
	for i, name := range columns {
		if targets[i] = asset.Suggested(name); slices.Contains(targets[:i], targets[i]) {
			targets[i] = name
		}
		if asset.IsExport(columns) && reported(name) {
			targets[i] = ""
		}
	}
	if slices.Equal(u.values["column"], columns) {
		for i := range targets {
			targets[i] = u.values.Get("target." + strconv.Itoa(i))
		}
	}
	return targets
}
