-- What the portal's form for lost mode begins with.
ALTER TABLE companies ADD COLUMN lost_message TEXT NOT NULL DEFAULT '';
ALTER TABLE companies ADD COLUMN lost_phone TEXT NOT NULL DEFAULT '';
ALTER TABLE companies ADD COLUMN lost_organization TEXT NOT NULL DEFAULT '';
