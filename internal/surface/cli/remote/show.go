package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/musterhq/muster/internal/surface/cli"
)

// maxColumns is how many columns a table has at most, and maxCell how many characters a
// cell.
const (
	maxColumns = 8
	maxCell    = 60
)

// show prints an answer: as it came, or as a table for people. asText: it is no JSON.
func show(w io.Writer, form string, body []byte, asText bool) error {
	if asText && form == "table" {
		_, err := fmt.Fprintln(w, lines(string(body)))
		return err
	}
	if form == "json" {
		return printJSON(w, body, asText)
	}
	value, err := ordered(json.NewDecoder(bytes.NewReader(body)))
	if err != nil {
		return fmt.Errorf("the answer of the service is not JSON: %w", err)
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	rows, found := listOf(value)
	if found {
		tabulate(table, rows)
		more(table, value, len(rows))
	} else {
		describe(table, "", value)
	}
	return table.Flush()
}

func printJSON(w io.Writer, body []byte, asText bool) error {
	if asText {
		return json.NewEncoder(w).Encode(map[string]string{"text": string(body)})
	}
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		return fmt.Errorf("the answer of the service is not JSON: %w", err)
	}
	_, err := fmt.Fprintln(w, strings.TrimSpace(out.String()))
	return err
}

// member is a member of an object, in the order in which it came.
type member struct {
	name  string
	value any // string, json.Number, bool, nil, []any or object
}

type object []member

// ordered reads one value.
func ordered(d *json.Decoder) (any, error) {
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			one, err := ordered(d)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		all := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := ordered(d)
			if err != nil {
				return nil, err
			}
			all = append(all, member{name.(string), value})
		}
		_, err = d.Token()
		return all, err
	}
	return token, nil
}

// listOf is the list that an answer is about: itself, its content if it is a page, or the
// only list that it has.
func listOf(value any) ([]any, bool) {
	if list, ok := value.([]any); ok {
		return list, true
	}
	all, _ := value.(object)
	for _, m := range all {
		if list, ok := m.value.([]any); ok && (m.name == "content" || len(all) <= 2) {
			return list, true
		}
	}
	return nil, false
}

// more says how the rest of a list is shown, of which an answer is a part with so many rows.
func more(w io.Writer, answer any, rows int) {
	all, _ := answer.(object)
	for _, m := range all {
		switch text := plain(fmt.Sprint(m.value)); {
		case m.name == "totalElements" && text != strconv.Itoa(rows):
			fmt.Fprintf(w, "%d of %s shown: --page and --size (100 at most) show the others\n", rows, text)
		case m.name == "next" && rows > 0:
			fmt.Fprintf(w, "--after %s shows what happened after these\n", text)
		}
	}
}

// tabulate prints things with the members that have one value each.
func tabulate(w io.Writer, rows []any) {
	var columns []string
	for _, row := range rows {
		all, _ := row.(object)
		for _, m := range all {
			if _, simple := scalar(m.value); simple && !slices.Contains(columns, m.name) && len(columns) < maxColumns {
				columns = append(columns, m.name)
			}
		}
	}
	if len(columns) == 0 {
		for _, row := range rows {
			text, _ := scalar(row)
			fmt.Fprintln(w, cut(text))
		}
		return
	}
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, row := range rows {
		cells := make([]string, len(columns))
		all, _ := row.(object)
		for _, m := range all {
			if i := slices.Index(columns, m.name); i >= 0 {
				text, _ := scalar(m.value)
				cells[i] = cut(text)
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
}

// describe prints a thing, one member a line.
func describe(w io.Writer, name string, value any) {
	if text, simple := scalar(value); simple {
		fmt.Fprintln(w, strings.TrimPrefix(name+"\t"+text, "\t"))
		return
	}
	switch all := value.(type) {
	case object:
		for _, m := range all {
			describe(w, strings.TrimPrefix(name+"."+plain(m.name), "."), m.value)
		}
	case []any:
		for i, one := range all {
			describe(w, fmt.Sprintf("%s.%d", name, i), one)
		}
	}
}

// scalar is the text of a value that is one, or of a list of such.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "-", true
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			text, simple := scalar(one)
			if _, inner := one.([]any); inner || !simple {
				return "", false
			}
			parts[i] = text
		}
		return strings.Join(parts, ", "), true
	case object:
		return "", false
	}
	return plain(fmt.Sprint(value)), true
}

// plain is a text in one line that is cli.Visible.
func plain(text string) string {
	return cli.Visible(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(text))
}

// lines is plain for a text of several lines.
func lines(text string) string {
	return cli.Visible(strings.NewReplacer("\t", " ", "\r", " ").Replace(strings.TrimSuffix(text, "\n")))
}

func cut(text string) string {
	if characters := []rune(text); len(characters) > maxCell {
		return string(characters[:maxCell-1]) + "…"
	}
	return text
}
