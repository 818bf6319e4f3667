-- The few devices that are in lost mode.
CREATE INDEX assets_lost ON assets (company_id, id) WHERE lost_mode;
