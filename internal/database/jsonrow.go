package database

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonRow is a row of a result that a statement returned as an array of JSON, beside another
// row.
type jsonRow []json.RawMessage

// rowsOf reads an array of rows, each an array of its columns; an empty text is none.
func rowsOf[T any](text string, scan func(row) (T, error)) (all []T, err error) {
	var rows []jsonRow
	if err := decode(text, &rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		t, err := scan(r)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// Scan implements row.
func (r jsonRow) Scan(into ...any) error {
	if len(into) != len(r) {
		return fmt.Errorf("%d columns for %d fields", len(r), len(into))
	}
	for i, field := range into {
		scanner, ok := field.(interface{ Scan(column any) error })
		if !ok {
			if err := json.Unmarshal(r[i], field); err != nil {
				return err
			}
			continue
		}
		column, err := columnOf(r[i])
		if err == nil {
			err = scanner.Scan(column)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// columnOf is a column as the driver returns it.
func columnOf(raw json.RawMessage) (column any, err error) {
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	if err := numbers.Decode(&column); err != nil {
		return nil, err
	}
	if n, ok := column.(json.Number); ok {
		return n.Int64()
	}
	return column, nil
}
