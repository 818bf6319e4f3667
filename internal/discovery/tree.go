package discovery

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deeply a document may nest; the vendor's parser stops at the
// same depth.
const maxDepth = 100

var errTooDeep = errors.New("Message too deep. Max recursion depth reached") //nolint:staticcheck // the vendor's words

// readTree decodes one JSON value into map[string]any, []any, string,
// json.Number, bool and nil. Unlike encoding/json it refuses member names that
// occur twice and text that is not UTF-8.
func readTree(text []byte) (value any, err error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	if err := json.UnmarshalDecode(decoder, &value, json.WithUnmarshalers(json.UnmarshalFromFunc(readNumber))); err != nil {
		return nil, plainError(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("Expected end of input") //nolint:staticcheck // the vendor's words
	}
	return value, nil
}

// readNumber keeps a number as it is written, and leaves other values to the
// decoder.
func readNumber(decoder *jsontext.Decoder, value *any) error {
	switch {
	case decoder.StackDepth() > maxDepth:
		return errTooDeep
	case decoder.PeekKind() != '0':
		return errors.ErrUnsupported
	}
	token, err := decoder.ReadToken()
	*value = stdjson.Number(token.String())
	return err
}

// plainError keeps the place and leaves out the text, which may be a secret.
func plainError(err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, errTooDeep):
		return errTooDeep
	case errors.As(err, &syntactic) && syntactic.Err != nil:
		return fmt.Errorf("%w at byte %d", syntactic.Err, syntactic.ByteOffset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("Unexpected end of string. Expected a value") //nolint:staticcheck // the vendor's words
	}
	return err
}
