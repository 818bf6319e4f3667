package asset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/validate"
)

// Limits of one import.
const (
	MaxImportBytes   = 100 << 20
	maxLineBytes     = 1 << 20
	readAhead        = 64 << 10 // bytes
	maxImportRows    = 250_000
	maxImportColumns = 100
	maxCellLength    = 1000 // characters
	maxImportCells   = 2_000_000
	maxFaults        = 1000 // reading stops after so many lines at fault
)

// ErrLargeFile is the error of a file that is larger than MaxImportBytes.
var ErrLargeFile = fault.Invalid(fmt.Sprintf("the file is larger than %d MB: split it", MaxImportBytes>>20))

// errLongLine is the error of a line that is longer than maxLineBytes.
var errLongLine = errors.New("long line")

// CSV is a file whose header line was read. Lines reads the rest, once. It is not safe for concurrent use.
type CSV struct {
	Columns []string // names of the header line
	Example []string // after Lines: the cells of the first line below it
	reader  *csv.Reader
	bound   *bounded
	last    int // number of the line that was read last
}

// bounded fails with ErrLargeFile or errLongLine when too many bytes of the file, or of one line, were
// read. The reader above it reads ahead, so the limit of a line is exact to readAhead.
type bounded struct {
	io.Reader
	all, line int64 // bytes that may still be read
}

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.all <= 0:
		return 0, ErrLargeFile
	case b.line <= 0:
		return 0, errLongLine
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.all, b.line)])
	b.all -= int64(n)
	b.line -= int64(n)
	return n, err
}

// ReadLines reads a CSV file. Its header line names the columns: identification or serialNumber (one
// is required), model, manufacturer, brand and tags (TagsCell). Any other column is custom
// data. A LineError is about one line. The error is about the whole file.
func ReadLines(r io.Reader) ([]Line, []LineError, error) {
	file, err := OpenCSV(r)
	if err != nil {
		return nil, nil, err
	}
	if IsExport(file.Columns) {
		return nil, nil, fault.Invalid("line 1: the file is an export of the portal, with columns that devices report: import it in " +
			"the portal under Devices, Import, which leaves them out")
	}
	return file.Lines(file.Columns)
}

// The names of the first two columns of the portal's export.
const (
	ExportedID   = "id"
	ExportedName = "Name"
)

// IsExport reports whether the columns of a file are those of the portal's export, to which a person
// may have added others.
func IsExport(columns []string) bool {
	return len(columns) > 1 && columns[0] == ExportedID && columns[1] == ExportedName
}

// OpenCSV reads the header line of a CSV file in UTF-8, and skips a byte-order mark. Errors are
// fault.Invalid, or those of r.
// Columns are separated by commas, or by semicolons or tabs, if the header line has more
// of them outside quotes.
func OpenCSV(r io.Reader) (*CSV, error) {
	bound := &bounded{r, MaxImportBytes + 1, maxLineBytes}
	buffered := bufio.NewReaderSize(bound, readAhead)
	mark, _ := buffered.Peek(3)
	switch {
	case bytes.Equal(mark, []byte("\xef\xbb\xbf")):
		_, _ = buffered.Discard(3)
	case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
		return nil, fault.Invalid("line 1: the file is UTF-16: save it as CSV UTF-8")
	}
	c := &CSV{bound: bound, reader: csv.NewReader(buffered)}
	ahead, _ := buffered.Peek(readAhead) // Read returns the error again
	c.reader.Comma = separator(ahead)
	header, err := c.reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, fault.Invalid("the file is empty: the first line must name the columns, such as identification,serialNumber,model,tags")
	}
	if wrong := c.lineFault(err); wrong != nil {
		return nil, fault.Invalid(fmt.Sprintf("line %d: %s", wrong.Line, wrong.Message))
	}
	if err != nil {
		return nil, err
	}
	c.last = 1
	c.Columns, err = readHeader(header)
	return c, err
}

// separator returns the comma, or ";" or tab if the first line has more of them outside quotes.
func separator(ahead []byte) rune {
	quoted, counts := false, map[rune]int{}
	for _, r := range string(ahead) {
		if r == '"' {
			quoted = !quoted
		} else if r == '\n' && !quoted {
			break
		} else if !quoted {
			counts[r]++
		}
	}
	found := ','
	for _, r := range ";\t" {
		if counts[r] > counts[found] {
			found = r
		}
	}
	return found
}

func readHeader(header []string) ([]string, error) {
	if len(header) > maxImportColumns {
		return nil, fault.Invalid(fmt.Sprintf("line 1: %d columns, at most %d are allowed", len(header), maxImportColumns))
	}
	seen := map[string]bool{}
	for i, column := range header {
		column = strings.TrimSpace(column)
		if why := cellFault(column); why != "" {
			return nil, fault.Invalid(fmt.Sprintf("line 1: column %d %s", i+1, why))
		}
		if column == "" {
			return nil, fault.Invalid(fmt.Sprintf("line 1: column %d has no name", i+1))
		}
		if seen[column] {
			return nil, fault.Invalid(fmt.Sprintf("line 1: column %q stands twice", column))
		}
		seen[column] = true
		header[i] = column
	}
	return header, nil
}

// Lines reads the lines below the header. targets has one entry for each of Columns: a name of
// Targets, any other name for a key of the custom data, or "" to leave the column out. After a
// broken quote, a long line or maxFaults lines at fault it stops, and returns no lines.
func (c *CSV) Lines(targets []string) ([]Line, []LineError, error) {
	seen := map[string]bool{}
	for _, target := range targets {
		if target != "" && seen[target] {
			return nil, nil, fault.Invalid(fmt.Sprintf("line 1: two columns are %s: choose one of them", target))
		}
		seen[target] = true
	}
	if !seen[nameTarget] && !seen[serialTarget] {
		return nil, nil, fault.Invalid("line 1: the columns identification and serialNumber are missing: name one of them")
	}
	lines, faults, err := c.rows(targets)
	if err == nil && len(lines)+len(faults) == 0 {
		err = fault.Invalid("line 2: the file has no line below its header")
	}
	return lines, faults, err
}

// rows reads until the end of the file or the first fault that hides where the next line begins.
func (c *CSV) rows(targets []string) (lines []Line, faults []LineError, err error) {
	serials, cells := map[string]int{}, 0
	c.reader.ReuseRecord = true
	for len(faults) < maxFaults {
		c.bound.line = maxLineBytes
		record, err := c.reader.Read()
		if errors.Is(err, io.EOF) {
			return lines, faults, nil
		}
		if wrong := c.lineFault(err); wrong != nil {
			// A broken quote hides where the next line begins: stop here,
			// but go on after a line with a wrong number of cells.
			faults = append(faults, *wrong)
			if !errors.Is(err, csv.ErrFieldCount) {
				return nil, faults, nil
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if c.Example == nil {
			c.Example = slices.Clone(record)
		}
		number, _ := c.reader.FieldPos(0)
		c.last = number
		line, why := readLine(targets, record)
		line.Number = number
		if key := line.SerialKey(); key != "" && why == "" {
			if first, twice := serials[key]; twice {
				why = fmt.Sprintf("serialNumber %q stands on line %d already", line.Specifications[serialTarget], first)
			}
			serials[key] = number
		}
		if cells += len(line.CustomData) + len(line.Specifications); cells > maxImportCells {
			why = fmt.Sprintf("more than %d cells: split the file", maxImportCells)
		}
		if len(lines) == maxImportRows {
			why = fmt.Sprintf("more than %d assets: split the file", maxImportRows)
		}
		if why != "" {
			faults = append(faults, LineError{number, why})
		}
		if len(lines) < maxImportRows && cells <= maxImportCells {
			lines = append(lines, line)
		}
	}
	return nil, faults, nil
}

// readLine turns one row into a line. The text says what is wrong with it; empty: nothing.
func readLine(targets, record []string) (Line, string) {
	line := Line{CustomData: map[string]string{}, Specifications: map[string]string{}}
	for i, cell := range record {
		if targets[i] == "" {
			continue
		}
		if why := cellFault(cell); why != "" {
			return line, targets[i] + " " + why
		}
		cell = strings.TrimSpace(validate.Uncell(strings.TrimSpace(cell)))
		if slices.Contains(factTargets, targets[i]) { // as it is kept of devices, which report the same
			cell = validate.Clean(cell, maxCellLength)
		}
		switch target := targets[i]; {
		case cell == "":
		case target == nameTarget:
			line.Identification = cell
		case target == tagsKey:
			line.Tags = splitTags(cell)
		case slices.Contains(factTargets, target):
			line.Specifications[target] = cell
		default:
			line.CustomData[target] = cell
		}
	}
	if line.Identification == "" && line.SerialKey() == "" {
		return line, "identification is blank"
	}
	edit := line.edit()
	if edit.Identification == nil && edit.Tags == nil && len(edit.CustomData) == 0 {
		return line, "" // only hardware facts: Check has nothing to check
	}
	if err := edit.Check(); err != nil {
		return line, fault.From(err).Detail
	}
	return line, ""
}

// TagsCell is the cell of tags: a ";" of a tag has a backslash before it. After a tag that ends with one there is a space.
func TagsCell(tags []string) string {
	cell := strings.ReplaceAll(strings.Join(tags, "\x00"), ";", `\;`)
	return strings.ReplaceAll(strings.ReplaceAll(cell, "\\\x00", "\\ ;"), "\x00", ";")
}

// splitTags reads TagsCell, of a cell without control characters. It drops blank and repeated tags and keeps the order.
func splitTags(cell string) (tags []string) {
	for tag := range strings.SplitSeq(strings.ReplaceAll(cell, `\;`, "\x00"), ";") {
		if tag = strings.TrimSpace(strings.ReplaceAll(tag, "\x00", ";")); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// cellFault says what is wrong with a cell, as the end of a sentence; empty: nothing.
func cellFault(cell string) string {
	switch {
	case !utf8.ValidString(cell):
		return "is not UTF-8: save the file as CSV UTF-8"
	case utf8.RuneCountInString(cell) > maxCellLength:
		return fmt.Sprintf("has more than %d characters", maxCellLength)
	case strings.ContainsFunc(cell, unicode.IsControl):
		return "holds a control character or a line break"
	}
	return ""
}

// lineFault returns what an error of the CSV reader says about one line. It returns nil if err is nil or
// is about the whole file.
func (c *CSV) lineFault(err error) *LineError {
	parse, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case errors.Is(err, errLongLine):
		return &LineError{c.last + 1, fmt.Sprintf("longer than %d MB: perhaps a quote is not closed", maxLineBytes>>20)}
	case !ok:
		return nil
	case errors.Is(err, csv.ErrFieldCount):
		return &LineError{parse.Line, "not as many cells as the header has columns"}
	case errors.Is(err, csv.ErrQuote):
		return &LineError{parse.StartLine, "a quote is not closed, or text follows one"}
	case errors.Is(err, csv.ErrBareQuote):
		return &LineError{parse.Line, "a quote stands inside a cell: write the cell in quotes, and the quote twice"}
	}
	return &LineError{parse.Line, parse.Err.Error()}
}
