package devices

import (
	"io"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// logs is the tab with the logs that the device uploaded, and the text of the one that
// the query names, or of the newest.
func (s *Section) logs(v *frame.Visit, d device) (templ.Component, error) {
	all, err := s.Logs.Logs(v.Context(), v.Company.ID, d.ID)
	if err != nil || len(all) == 0 {
		return logsPart(v, d, all, agentdevice.Log{}), err
	}
	id := v.Query().Get("log")
	if id == "" {
		id = all[0].ID
	}
	shown, err := s.Logs.Log(v.Context(), v.Company.ID, d.ID, id)
	return logsPart(v, d, all, shown), err
}

// logFile answers with one log as a file of plain text.
func (s *Section) logFile(v *frame.Visit, a asset.Asset) error {
	l, err := s.Logs.Log(v.Context(), a.CompanyID, a.ID, v.PathValue("log"))
	if err != nil {
		return err
	}
	h := v.Writer().Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", `attachment; filename="agent-log-`+l.At.UTC().Format("2006-01-02T150405Z")+`.txt"`)
	_, err = io.WriteString(v.Writer(), l.Text)
	return err
}
