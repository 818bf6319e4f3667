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
)

// Limits of one import.
const (
	maxImportBytes   = 100 << 20
	maxImportRows    = 250_000
	maxImportColumns = 100
	maxCellLength    = 1000 // characters
	maxFaults        = 1000 // that are named
)

// ReadLines reads a CSV file with a header line: identification, serialNumber, of which
// one is required, model, manufacturer, brand, tags (separated by ";"); any other column is
// custom data. A byte-order mark is skipped. It names the lines at fault; an error is about
// the whole file.
func ReadLines(r io.Reader) ([]Line, []LineError, error) {
	limited := &io.LimitedReader{R: r, N: maxImportBytes + 1}
	buffered := bufio.NewReader(limited)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = buffered.Discard(3)
	}
	reader := csv.NewReader(buffered)
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, fault.Invalid("the file is empty: the first line must name the columns, such as identification,serialNumber,model,tags")
	}
	if err != nil {
		return nil, nil, fault.Invalid(fmt.Sprintf("line %d: %s", csvFault(err).Line, csvFault(err).Message))
	}
	if header, err = readHeader(header); err != nil {
		return nil, nil, err
	}
	lines, faults := readRows(reader, header)
	if limited.N <= 0 {
		return nil, nil, fault.Invalid(fmt.Sprintf("the file is larger than %d MiB: split it", maxImportBytes>>20))
	}
	return lines, faults, nil
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
	if !seen["identification"] && !seen["serialNumber"] {
		return nil, fault.Invalid("line 1: the columns identification and serialNumber are missing: name one of them")
	}
	return header, nil
}

func readRows(reader *csv.Reader, header []string) (lines []Line, faults []LineError) {
	serials := map[string]int{}
	for len(faults) < maxFaults {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return lines, faults
		}
		if err != nil {
			// A broken quote hides where the next line begins: stop here,
			// but go on after a line with a wrong number of cells.
			faults = append(faults, *csvFault(err))
			if !errors.Is(err, csv.ErrFieldCount) {
				return nil, faults
			}
			continue
		}
		number, _ := reader.FieldPos(0)
		line, why := readLine(header, record)
		line.Number = number
		if key := line.SerialKey(); key != "" && why == "" {
			if first, twice := serials[key]; twice {
				why = fmt.Sprintf("serialNumber %q stands on line %d already", line.Specifications["serialNumber"], first)
			}
			serials[key] = number
		}
		if len(lines) == maxImportRows {
			why = fmt.Sprintf("more than %d assets: split the file", maxImportRows)
		}
		if why != "" {
			faults = append(faults, LineError{number, why})
		}
		if len(lines) < maxImportRows {
			lines = append(lines, line)
		}
	}
	return nil, faults
}

// readLine turns one row into a line, or says what is wrong with it.
func readLine(header, record []string) (Line, string) {
	line := Line{CustomData: map[string]string{}, Specifications: map[string]string{}}
	for i, cell := range record {
		if why := cellFault(cell); why != "" {
			return line, header[i] + " " + why
		}
		cell = strings.TrimSpace(cell)
		switch column := header[i]; {
		case cell == "":
		case column == "identification":
			line.Identification = cell
		case column == tagsKey:
			line.Tags = splitTags(cell)
		case column == "serialNumber" || column == "model" || column == "manufacturer" || column == "brand":
			line.Specifications[column] = cell
		default:
			line.CustomData[column] = cell
		}
	}
	if line.Identification == "" && line.SerialKey() == "" {
		return line, "identification is blank"
	}
	edit := Edit{Tags: line.Tags, CustomData: map[string]*string{}}
	if line.Identification != "" {
		edit.Identification = &line.Identification
	}
	for key, value := range line.CustomData {
		edit.CustomData[key] = &value
	}
	if edit.Identification == nil && edit.Tags == nil && len(edit.CustomData) == 0 {
		return line, "" // its hardware facts alone
	}
	if err := edit.Check(); err != nil {
		return line, fault.From(err).Detail
	}
	return line, ""
}

// splitTags drops blank and repeated tags and keeps the order.
func splitTags(cell string) (tags []string) {
	for _, tag := range strings.Split(cell, ";") {
		if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

func cellFault(cell string) string {
	switch {
	case !utf8.ValidString(cell):
		return "is not UTF-8"
	case utf8.RuneCountInString(cell) > maxCellLength:
		return fmt.Sprintf("has more than %d characters", maxCellLength)
	case strings.ContainsFunc(cell, unicode.IsControl):
		return "holds a control character or a line break"
	}
	return ""
}

func csvFault(err error) *LineError {
	parse, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case !ok:
		return &LineError{0, err.Error()}
	case errors.Is(err, csv.ErrFieldCount):
		return &LineError{parse.Line, "not as many cells as the header has columns"}
	}
	return &LineError{parse.Line, parse.Err.Error()}
}
