-- Mail about what happened. Each user has a position in the company's history of events, up
-- to which the user had mail, or needed none. No user gets mail about what is past.

-- +goose Up
ALTER TABLE mail_users ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
INSERT INTO mail_users (user_id, company_id)
    SELECT u.id, u.company_id FROM users u WHERE NOT EXISTS (SELECT 1 FROM mail_users m WHERE m.user_id = u.id);
UPDATE mail_users SET position = COALESCE((SELECT h.last FROM event_heads h WHERE h.company_id = mail_users.company_id), 0);
CREATE INDEX mail_users_position ON mail_users (company_id, position);
