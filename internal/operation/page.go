package operation

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/musterhq/muster/internal/slice"
)

// PageRequest asks for one page of a list. Embed it in an argument struct, with
// a sort argument beside it whose enum rule names every order of the list.
type PageRequest struct {
	Page int `query:"page" rule:"min=0 max=2147483647 default=0" doc:"Page number, from 0. The next page is number + 1, as long as last is false."`
	Size int `query:"size" rule:"min=1 max=100 default=20" doc:"Rows a page, 1 to 100."`
}

// Offset is the number of rows before the page.
func (p PageRequest) Offset() int64 { return int64(p.Page) * int64(p.Size) }

// Page is one page of a list. Its JSON is Spring Data's PageImpl, member for
// member (contract 4.1).
type Page[T any] struct {
	Content []T
	Request PageRequest
	Total   int64
}

// PageOf is the page of what a store found, of total, as a view shows it.
func PageOf[F, T any](request PageRequest, found []F, total int64, view func(F) T) Page[T] {
	return Page[T]{Content: slice.Map(found, view), Request: request, Total: total}
}

type pageSort struct {
	Empty    bool `json:"empty"`
	Sorted   bool `json:"sorted"`
	Unsorted bool `json:"unsorted"`
}

type pageable struct {
	PageNumber int      `json:"pageNumber"`
	PageSize   int      `json:"pageSize"`
	Sort       pageSort `json:"sort"`
	Offset     int64    `json:"offset"`
	Paged      bool     `json:"paged"`
	Unpaged    bool     `json:"unpaged"`
}

// PageJSON is the wire form of a Page; surfaces derive its schema from it.
type PageJSON[T any] struct {
	Content          []T      `json:"content"`
	Pageable         pageable `json:"pageable"`
	Last             bool     `json:"last"`
	TotalElements    int64    `json:"totalElements"`
	TotalPages       int64    `json:"totalPages"`
	Size             int      `json:"size"`
	Number           int      `json:"number"`
	Sort             pageSort `json:"sort"`
	First            bool     `json:"first"`
	NumberOfElements int      `json:"numberOfElements"`
	Empty            bool     `json:"empty"`
}

// MarshalJSON writes the page as Spring Boot 3 serializes a PageImpl.
func (p Page[T]) MarshalJSON() ([]byte, error) {
	sorted := pageSort{Sorted: true}
	pages := (p.Total + int64(p.Request.Size) - 1) / int64(p.Request.Size)
	content := p.Content
	if content == nil {
		content = []T{}
	}
	return json.Marshal(PageJSON[T]{
		Content: content,
		Pageable: pageable{PageNumber: p.Request.Page, PageSize: p.Request.Size, Sort: sorted,
			Offset: p.Request.Offset(), Paged: true},
		Last: int64(p.Request.Page)+1 >= pages, TotalElements: p.Total, TotalPages: pages,
		Size: p.Request.Size, Number: p.Request.Page, Sort: sorted,
		First: p.Request.Page == 0, NumberOfElements: len(content), Empty: len(content) == 0,
	})
}

// Wire implements Wired: a Page is written as a PageJSON.
func (Page[T]) Wire() reflect.Type { return reflect.TypeFor[PageJSON[T]]() }

// SortOrder splits the value of a sort argument, such as "syncedAt,desc". Which
// values there are is the enum rule of the argument.
func SortOrder(text string) (field string, descending bool) {
	field, direction, _ := strings.Cut(text, ",")
	return field, direction == "desc"
}
