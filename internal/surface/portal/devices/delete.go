package devices

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// deletes are the rights that deleting an asset takes: its history is the company's.
const deletes = account.ViewDevices | account.CommandDevices | account.ManageCompany

func deletePath(id string) string { return frame.DevicePath(id) + "/delete" }

// history is what is deleted with an asset, in memory: at most 20 logs of a megabyte, and
// rows. It implements durable.RowExporter.
type history struct {
	lines bytes.Buffer
	// code is of the file that the person has; Commit fails when this history differs. Empty
	// compares nothing.
	code string
}

// Begin implements durable.RowExporter.
func (h *history) Begin() error {
	h.lines.Reset()
	return nil
}

// Keep implements durable.RowExporter.
func (h *history) Keep(table string, row map[string]any) error {
	line, err := asset.ExportLine(table, row)
	h.lines.Write(line)
	return err
}

// Commit implements durable.RowExporter.
func (h *history) Commit() error {
	if h.code == "" || strings.EqualFold(h.code, h.sum()) {
		return nil
	}
	return fault.New(fault.Unsupported, "nothing was deleted: the code is not that of the asset's history as it is now. "+
		"Download the file again, and type the code at the end of its name")
}

// sum is the code of the history: the first eight digits of its SHA-256.
func (h *history) sum() string {
	sum := sha256.Sum256(h.lines.Bytes())
	return hex.EncodeToString(sum[:4])
}

// historyFile answers with everything that is deleted with an archived asset. The code in
// the file's name is typed to delete it: who has the code has the file.
func (s *Section) historyFile(v *frame.Visit, a asset.Asset) error {
	var h history
	if err := s.Deleter.ExportAsset(v.Context(), a.CompanyID, a.ID, &h); err != nil {
		return v.Refused(frame.DevicePath(a.ID), err, fault.Unsupported)
	}
	v.Download("application/x-ndjson", "asset-"+a.ID+"-"+h.sum()+".ndjson")
	_, err := h.lines.WriteTo(v.Writer())
	return err
}

// askDelete shows what deleting an archived asset does.
func (s *Section) askDelete(v *frame.Visit, a asset.Asset) error {
	return v.Show("Delete an asset", frame.DevicesPath, deletePage(device{Asset: a}))
}

// delete ends an archived asset for good, once the person has its history as it is now.
func (s *Section) delete(v *frame.Visit, a asset.Asset) error {
	name, code := (device{Asset: a}).name(), strings.TrimSpace(v.Form.Get("code"))
	if code == "" || !policy.SameName(v.Form.Get("confirm"), name) {
		return v.Redirect(deletePath(a.ID), frame.Flash{Tone: frame.Bad,
			Text: "Nothing was deleted: type the code of the downloaded file, and the asset's name, “" + name + "”."})
	}
	if err := s.Deleter.DeleteAssets(v.Context(), a.CompanyID, []string{a.ID}, &history{code: code}); err != nil {
		return v.Refused(deletePath(a.ID), err, fault.Unsupported)
	}
	return v.Redirect(frame.DevicesPath+"?archived=true", frame.Done("Deleted "+name+" with its history."))
}
