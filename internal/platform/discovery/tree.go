package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deeply a document may nest; the vendor's parser stops at the
// same depth.
const maxDepth = 100

var errTooDeep = errors.New("Message too deep. Max recursion depth reached") //nolint:staticcheck // the vendor's words

// readTree decodes one JSON value into map[string]any, []any, string,
// json.Number, bool and nil. Unlike encoding/json it refuses member names that
// occur twice and text that is not UTF-8.
func readTree(text []byte) (any, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	value, err := readValue(decoder, 0)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("Expected end of input") //nolint:staticcheck // the vendor's words
	}
	return value, nil
}

func readValue(decoder *jsontext.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	token, err := decoder.ReadToken()
	if err != nil {
		return nil, syntaxError(err)
	}
	switch token.Kind() {
	case '{':
		return readObject(decoder, depth)
	case '[':
		return readArray(decoder, depth)
	case '"':
		return token.String(), nil
	case '0':
		return json.Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	default:
		return nil, nil
	}
}

func readObject(decoder *jsontext.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for decoder.PeekKind() != '}' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, syntaxError(err)
		}
		key := name.String()
		value, err := readValue(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		object[key] = value
	}
	_, err := decoder.ReadToken()
	return object, err
}

func readArray(decoder *jsontext.Decoder, depth int) (any, error) {
	array := []any{}
	for decoder.PeekKind() != ']' {
		value, err := readValue(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := decoder.ReadToken()
	return array, err
}

// syntaxError keeps the place and leaves out the text, which may be a secret.
func syntaxError(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) && syntactic.Err != nil {
		return fmt.Errorf("%w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("Unexpected end of string. Expected a value") //nolint:staticcheck // the vendor's words
	}
	return err
}
