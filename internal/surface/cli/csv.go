package cli

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

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// Limits of one import.
const (
	maxImportBytes   = 64 << 20
	maxImportRows    = 250_000
	maxImportColumns = 100
	maxCellLength    = 1000 // characters
	maxTags          = 50
	maxShownFaults   = 10
)

// ReadAssets reads assets from a CSV file with a header line: identification
// (required), serialNumber, model, manufacturer, brand, tags (separated by
// ";"); any other column is customData. A byte-order mark is skipped. The
// error names every line at fault, up to ten; then nothing is returned.
func ReadAssets(r io.Reader) ([]asset.Asset, error) {
	limited := &io.LimitedReader{R: r, N: maxImportBytes + 1}
	buffered := bufio.NewReader(limited)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = buffered.Discard(3)
	}
	reader := csv.NewReader(buffered)
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, fault.Invalid("the file is empty: the first line must name the columns, such as identification,serialNumber,model,tags")
	}
	if err != nil {
		return nil, fault.Invalid(csvFault(err))
	}
	if header, err = readHeader(header); err != nil {
		return nil, err
	}
	assets, faults := readRows(reader, header)
	if limited.N <= 0 {
		return nil, fault.Invalid(fmt.Sprintf("the file is larger than %d MiB: split it", maxImportBytes>>20))
	}
	if len(faults) > 0 {
		return nil, fault.Invalid("nothing was imported: " + strings.Join(faults, "; "))
	}
	return assets, nil
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
	if !seen["identification"] {
		return nil, fault.Invalid("line 1: the column identification is missing")
	}
	return header, nil
}

func readRows(reader *csv.Reader, header []string) (assets []asset.Asset, faults []string) {
	note := func(line int, why string) bool {
		faults = append(faults, fmt.Sprintf("line %d: %s", line, why))
		return len(faults) < maxShownFaults
	}
	serials := map[string]int{}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return assets, faults
		}
		if err != nil {
			// A broken quote hides where the next line begins: stop here,
			// but go on after a line with a wrong number of cells.
			faults = append(faults, csvFault(err))
			if !errors.Is(err, csv.ErrFieldCount) || len(faults) >= maxShownFaults {
				return nil, faults
			}
			continue
		}
		line, _ := reader.FieldPos(0)
		item, why := readAsset(header, record)
		if serial := item.Specifications["serialNumber"]; serial != "" && why == "" {
			identity := item.Specifications["brand"] + "\x00" + serial
			if first, twice := serials[identity]; twice {
				why = fmt.Sprintf("serialNumber %q stands on line %d already", serial, first)
			}
			serials[identity] = line
		}
		if len(assets) == maxImportRows {
			why = fmt.Sprintf("more than %d assets: split the file", maxImportRows)
		}
		if why != "" && !note(line, why) {
			return nil, faults
		}
		assets = append(assets, item)
	}
}

// readAsset turns one row into an asset, or says what is wrong with it.
func readAsset(header, record []string) (asset.Asset, string) {
	item := asset.Asset{Status: asset.Pending, CustomData: map[string]string{}, Specifications: map[string]string{}}
	for i, cell := range record {
		if why := cellFault(cell); why != "" {
			return item, header[i] + " " + why
		}
		cell = strings.TrimSpace(cell)
		switch column := header[i]; column {
		case "identification":
			item.Identification = cell
		case "tags":
			item.Tags = splitTags(cell)
			if len(item.Tags) > maxTags {
				return item, fmt.Sprintf("more than %d tags", maxTags)
			}
		case "serialNumber", "model", "manufacturer", "brand":
			if cell != "" {
				item.Specifications[column] = cell
			}
		default:
			if cell != "" {
				item.CustomData[column] = cell
			}
		}
	}
	if item.Identification == "" {
		return item, "identification is blank"
	}
	return item, ""
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

func csvFault(err error) string {
	parse, ok := errors.AsType[*csv.ParseError](err)
	if !ok {
		return err.Error()
	}
	if errors.Is(err, csv.ErrFieldCount) {
		return fmt.Sprintf("line %d: not as many cells as the header has columns", parse.Line)
	}
	return fmt.Sprintf("line %d: %v", parse.Line, parse.Err)
}
