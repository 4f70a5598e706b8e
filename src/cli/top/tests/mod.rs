//! The view as a person sees it: screens as text, and what keys change.

mod keys;
mod printing;
mod recordings;
mod screens;
mod stage;
mod walking;
